"""What does a SKILL.md say of itself? Front matter and body, with file and line in every error."""

import re
from pathlib import Path
from typing import Any

from msgspec import Struct

from jackstay.core.errors import ConfigError

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
MAX_NAME, MAX_DESCRIPTION = 64, 1024
MAX_BYTES = 256_000
_FENCE = re.compile(r"---[ \t]*\r?\n")


class BadSkill(ConfigError):
    """A skill file that does not say what it has to; names the file, the line and the mend."""


class FrontMatter(Struct, frozen=True, gc=False):
    """A skill's name, what it is for, and everything else its front matter holds, as plain data."""

    name: str
    description: str
    body: str
    others: dict[str, Any] = {}


def read_skill(file: Path) -> FrontMatter:
    """The skill in a file. Raises BadSkill."""
    try:
        data = file.read_bytes()
    except OSError as problem:
        raise BadSkill(f"the skill cannot be read: {problem.strerror}", where=str(file)) from problem
    if len(data) > MAX_BYTES:
        raise BadSkill(f"the skill has {len(data)} bytes, at most {MAX_BYTES} are read", where=str(file))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        raise BadSkill("the skill is not UTF-8", where=f"{file}:{line}") from problem
    return parse(text, file)


def parse(text: str, file: Path) -> FrontMatter:
    """The skill in a text that was read from `file`. Raises BadSkill."""
    opened = _FENCE.match(text)
    if opened is None:
        raise BadSkill("front matter is missing", where=f"{file}:1", hint="begin the file with a line `---`")
    closed = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE).search(text, opened.end())
    if closed is None:
        raise BadSkill("front matter is not closed", where=f"{file}:1", hint="end it with a line `---`")
    values, lines = _values(text[opened.end() : closed.start()], file)
    name = _word(values, lines, "name", file, limit=MAX_NAME)
    if not NAME.match(name):
        raise BadSkill(
            f"name {name!r} is not small letters, digits and single hyphens", where=f"{file}:{lines['name']}"
        )
    description = _word(values, lines, "description", file, limit=MAX_DESCRIPTION)
    body = text[closed.end() :].strip()
    if not body:
        line = text[: closed.end()].count("\n") + 1
        raise BadSkill(
            "the skill has no body", where=f"{file}:{line}", hint="say below the front matter how to do it"
        )
    others = {key: value for key, value in values.items() if key not in ("name", "description")}
    return FrontMatter(name, description, body, others)


def _values(source: str, file: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The front matter's values and the line of each key in the file (the first line of the file is 1)."""
    import yaml  # 15 ms: only once somebody reads a skill

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(source, loader)
        values = yaml.load(source, loader)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        if mark is not None and mark.line >= source.count("\n"):
            # An open quotation is noticed at the end; where it began is what helps.
            mark = getattr(problem, "context_mark", None) or mark
        line = (mark.line if mark is not None else 0) + 2
        what = getattr(problem, "problem", None) or str(problem).split("\n")[0]
        raise BadSkill(f"front matter is not YAML: {what}", where=f"{file}:{line}") from problem
    except (ValueError, RecursionError) as problem:  # a date that is none, nesting without end
        raise BadSkill(f"front matter cannot be read: {problem}", where=f"{file}:2") from problem
    if not isinstance(values, dict):
        raise BadSkill(
            "front matter is not a mapping", where=f"{file}:2", hint="write `name: …` and `description: …`"
        )
    lines = {str(key.value): key.start_mark.line + 2 for key, _ in getattr(node, "value", ())}
    return {str(key): value for key, value in values.items()}, lines


def _word(values: dict[str, Any], lines: dict[str, int], key: str, file: Path, *, limit: int) -> str:
    value = values.get(key)
    where = f"{file}:{lines.get(key, 1)}"
    if value is None:
        raise BadSkill(f"{key} is missing", where=where, hint=f"add `{key}: …` to the front matter")
    if not isinstance(value, str) or not value.strip():
        raise BadSkill(f"{key} has to be a text, not {value!r}", where=where)
    text = " ".join(value.split())
    if len(text) > limit:
        raise BadSkill(f"{key} has {len(text)} characters, at most {limit} are allowed", where=where)
    return text
