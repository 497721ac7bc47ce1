"""How is a command started so that it does no more than its words say?"""

from jackstay.engine.ports import Launch, Launcher
from jackstay.policy.lines import Line, read_line
from jackstay.policy.neutral import neutral_environment
from jackstay.sandbox.named import Sandbox
from jackstay.sandbox.profile import read_view
from jackstay.ward.gitconfig import program_keys


def careful(sandbox: Sandbox | None, *, hidden: tuple[str, ...] = (), then: Launcher | None = None) -> Launcher:
    """A launcher for shells (`bash -c TEXT`) that holds commands judged read-only to reading.

    They get the neutral environment (no pager, no file-system monitor, no external diff, a fixed PATH) and,
    with a sandbox, a view in which nothing can be written and `hidden` places look empty. All other commands go
    to `then`, or are started as they are.
    """

    def launch(wanted: Launch) -> Launch:
        line = read_line(wanted.argv[-1]) if wanted.argv[1:2] == ("-c",) and len(wanted.argv) == 3 else None
        if line is None or line.unproven is not None:
            return then(wanted) if then is not None else wanted
        programs = _programs(line)
        keys = program_keys(wanted.cwd, wanted.env) if "git" in programs else ()
        env = neutral_environment(wanted.env, keys)
        argv = wanted.argv if sandbox is None else sandbox.wrap(wanted.argv, read_view(programs, hidden=hidden))
        return Launch(argv, wanted.cwd, env)

    return launch


def _programs(line: Line) -> frozenset[str]:
    return frozenset(part.words[0].rpartition("/")[2] for part in line.parts if part.words)
