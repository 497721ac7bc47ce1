"""What does the world say about a call? Gathered before policy is asked; policy itself looks at nothing."""

import glob
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from jackstay.core.facts import CallFacts, PathFact, Use
from jackstay.core.messages import ToolCall
from jackstay.core.tools import ToolSpec
from jackstay.policy.lines import Line, Target, read_line
from jackstay.policy.paths import directories, lexical, mark_of, within
from jackstay.policy.patterns import has_pattern
from jackstay.ward.resolve import canonical, has_other_names, is_below_a_file

_MOST_FILES = 100  # what a wider pattern names cannot be told one by one
_MOST_WILD = 2  # segments with wildcards: looking more of them up could walk the whole disk


def facts_of(
    call: ToolCall, spec: ToolSpec | None, workspace: str, home: str, protected: Sequence[str] = ()
) -> CallFacts:
    """The facts about a call: where its paths lead, what its command touches.

    `workspace` is the directory the call works in, `home` the user's home, `protected` are the harness's own
    places. `invalid`, `answers`, `nearest` and `digest` are for the caller to add. Never raises for what the
    arguments hold.
    """
    root, house = _settled(workspace), _settled(home)
    if spec is None:
        return CallFacts(known=False, workspace=root, cwd=root, home=house)
    if spec.command_arg is None and not spec.path_args:
        return CallFacts(
            effects=spec.effects, idempotent=spec.idempotent, workspace=root, cwd=root, home=house,
            url_args=spec.url_args,
        )  # fmt: skip
    look = _Look(root, house, tuple(_settled(place) for place in protected))
    if spec.command_arg is not None:
        return _command_facts(call, spec, spec.command_arg, look)
    return CallFacts(
        effects=spec.effects, idempotent=spec.idempotent, workspace=root, cwd=root, home=house,
        paths=tuple(_named_paths(call, spec, look)), url_args=spec.url_args,
    )  # fmt: skip


@lru_cache(256)
def _settled(place: str) -> str:
    return canonical(place, "/", "/") if place else ""


class _Look:
    """From where, and for whom, paths are looked at."""

    def __init__(self, workspace: str, home: str, protected: tuple[str, ...]) -> None:
        self.workspace, self.home, self.protected = workspace, home, protected

    def at(self, path: str, cwd: str, *, use: Use, said: str) -> PathFact:
        """The fact about one path."""
        real = canonical(path, cwd, self.home)
        inside = within(real, self.workspace)
        return PathFact(said, real, use, inside, mark_of(real, self.protected, use=use))


def _named_paths(call: ToolCall, spec: ToolSpec, look: _Look) -> Iterator[PathFact]:
    use: Use = "writes" if "writes" in spec.effects and spec.command_arg is None else "reads"
    given = [call.args.get(name) for name in spec.path_args if call.args.get(name) is not None]
    for said in given or ["."]:
        if isinstance(said, str):
            yield look.at(said, look.workspace, use=use, said=said)
        else:
            yield PathFact(repr(said), "", use)


# -- commands ----------------------------------------------------------------------------------------------


def _command_facts(call: ToolCall, spec: ToolSpec, command_arg: str, look: _Look) -> CallFacts:
    command = call.args.get(command_arg)
    line = read_line(command if isinstance(command, str) else "")
    places = tuple(_named_paths(call, spec, look)) if any(name in call.args for name in spec.path_args) else ()
    cwd = places[0].real if places else look.workspace
    touched = tuple(dict.fromkeys(_touched(line, cwd, look)))
    named = tuple(dict.fromkeys(_own_places_named(line, cwd, look))) if line.unproven is not None else ()
    return CallFacts(
        effects=line.effects & spec.effects, idempotent=spec.idempotent, workspace=look.workspace, cwd=cwd,
        home=look.home, paths=tuple(fact for fact in places if not fact.inside) + touched + named,
        linked=tuple(_linked(line, cwd, look)), command_arg=command_arg,
        url_args=spec.url_args,
    )  # fmt: skip


def _touched(line: Line, cwd: str, look: _Look) -> Iterator[PathFact]:
    starts = directories(line.moves, cwd, lambda move, start: canonical(move, start, look.home)) if cwd else []
    for target in line.targets:
        if not target.paths or not starts:
            yield PathFact(target.said, "", target.use)
            continue
        for path in target.paths:
            for directory in starts:
                yield from _at(path, target, directory, look, hidden="dotglob" in line.text)


def _linked(line: Line, cwd: str, look: _Look) -> Iterator[tuple[str, str]]:
    """Where the names in a command lead that is not known file by file, where links make that another place."""
    if not cwd or not line.names:
        return
    starts = directories(line.moves, cwd, lambda move, at: canonical(move, at, look.home))
    plain = directories(line.moves, cwd, lambda move, at: lexical(move, at, look.home))
    for name in line.names:
        spelled = {lexical(name, start, look.home) for start in plain}
        for real in (canonical(name, start, look.home) for start in starts):
            if real and real not in spelled:
                yield name, real


def _own_places_named(line: Line, cwd: str, look: _Look) -> Iterator[PathFact]:
    """The harness's own places among the words of a command that was not shown to change nothing.

    Programs nobody knows, links, and code in an argument can write there: naming the place is enough.
    """
    for word in (word for part in line.parts for word in part.words):
        value = word.rpartition("=")[2]
        real = canonical(value, cwd, look.home) if cwd and "/" in value else ""
        for place in look.protected:
            if within(real, place) or place in word:
                yield PathFact(word, real if within(real, place) else place, "writes", False, "harness")


def _at(path: str, target: Target, directory: str, look: _Look, *, hidden: bool) -> Iterator[PathFact]:
    """The fact about a path, or about each file its pattern names just now."""
    if target.globs and sum(has_pattern(segment) for segment in path.split("/")) > _MOST_WILD:
        yield PathFact(target.said, "", target.use)
        return
    names = _matching(path, directory, look.home, hidden=hidden) if target.globs else []
    if len(names) > _MOST_FILES:
        yield PathFact(target.said, "", target.use)
        return
    for name in names or [path]:
        fact = look.at(name, directory, use=target.use, said=target.said)
        if fact.use != "writes" or not is_below_a_file(fact.real):
            yield _written_through(fact, look)


def _written_through(fact: PathFact, look: _Look) -> PathFact:
    """A file with other names is written in all of them: it is no longer known to lie inside."""
    if fact.use == "writes" and fact.inside and has_other_names(fact.real):
        return PathFact(fact.said, fact.real, fact.use, False, fact.mark)
    return fact


def _matching(pattern: str, directory: str, home: str, *, hidden: bool) -> list[str]:
    if pattern == "~" or pattern.startswith("~/"):
        pattern = home + pattern[1:]
    # One more than are judged one by one: a sign that there are too many.
    names = glob.iglob(pattern, root_dir=directory, include_hidden=hidden)  # noqa: PTH207 - as a shell reads it
    return list(islice(names, _MOST_FILES + 1))
