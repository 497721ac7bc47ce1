"""How is a command started so that it does no more than its words say?"""

from collections.abc import Iterator
from pathlib import Path

from jackstay.engine.ports import Launch, Launcher
from jackstay.policy.lines import Line, read_line
from jackstay.policy.neutral import neutral_environment
from jackstay.policy.patterns import HOLE
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
        keys = program_keys(_git_places(line, wanted), wanted.env) if "git" in programs else ()
        env = neutral_environment(wanted.env, keys)
        argv = wanted.argv if sandbox is None else sandbox.wrap(wanted.argv, read_view(programs, hidden=hidden))
        return Launch(argv, wanted.cwd, env)

    return launch


def _programs(line: Line) -> frozenset[str]:
    return frozenset(part.words[0].rpartition("/")[2] for part in line.parts if part.words)


_MOST_PLACES = 16
_NAMES_A_PLACE = frozenset({"-C", "--git-dir", "--work-tree"})


def _git_places(line: Line, wanted: Launch) -> list[str]:
    """The directories git may run in: where the command starts, where it moves to, what git is pointed at.

    Where the text does not say, those of the directories beneath that are repositories.
    """
    found = [Path(wanted.cwd)]
    for move in (*line.moves, *_pointed_at(line)):
        for place in tuple(found):
            found += _reached(place, move)
        found = list(dict.fromkeys(found))[:_MOST_PLACES]
    return [str(place) for place in found]


def _pointed_at(line: Line) -> Iterator[str | None]:
    for part in line.parts:
        if not part.words or part.words[0].rpartition("/")[2] != "git":
            continue
        for word, following in zip(part.words, (*part.words[1:], ""), strict=True):
            name, equals, value = word.partition("=")
            if name in _NAMES_A_PLACE:
                said = value if equals else following
                yield None if HOLE in said else said


def _reached(place: Path, move: str | None) -> list[Path]:
    if move is not None:
        target = place / Path(move).expanduser()
        return [target] if target.is_dir() else []
    try:
        return sorted(one.parent for one in place.glob("*/.git"))
    except OSError:
        return []
