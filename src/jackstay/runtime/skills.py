"""Which skills does a run load by itself, and how does its model read the others?"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from jackstay.core.errors import ToolFailed
from jackstay.core.messages import JsonObject
from jackstay.core.tools import READS, ToolSpec
from jackstay.engine.ports import ToolContext, ToolOutput
from jackstay.skills.catalog import Catalog, Skill, places
from jackstay.skills.frontmatter import BadSkill

SKILL = "skill"
MOST_REFERENCE_CHARS = 50_000


def open_catalog(workspace: str, home: Path) -> Catalog:
    """The skills of this workspace, this home, the user and those that ship; read when they are asked for."""
    return Catalog(places(workspace=workspace, home=str(home), user=str(Path.home())))


class SkillTexts(Mapping[tuple[str, str], str]):
    """Bodies by (name, language), read when they are asked for; a skill that cannot be read is none."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getitem__(self, key: tuple[str, str]) -> str:
        name, language = key
        try:
            text = self._catalog.text(name, language=language or "en")
        except BadSkill:
            text = None
        if text is None:
            raise KeyError(key)
        return text

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((name, "en") for name in self._catalog.names())

    def __len__(self) -> int:
        return len(self._catalog.names())


class SkillTool:
    """`skill(name)`: first the list, then one skill's text, then a file that belongs to it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    @property
    def spec(self) -> ToolSpec:
        """What the model is told of it."""
        return _SPEC

    def check(self, args: JsonObject) -> str | None:
        """Missing, unknown or wrongly typed arguments, by name."""
        for given in args:
            if given != "name":
                return f"there is no argument {given!r}; known is name"
        return None if isinstance(args.get("name"), str) else "name is missing: it must be a text"

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """The list for an empty name, a skill's text, one of its files, or what a search finds."""
        name = str(args["name"]).strip()
        if not name:
            self._catalog.refresh()
            return ToolOutput(self._catalog.listing() or "There are no skills here.")
        skill, _, file = name.partition("/")
        found = self._catalog.get(skill)
        if found is None:
            return self._nearest(name)
        return ToolOutput(_reference(found, file) if file else self._whole(found))

    def _whole(self, found: Skill) -> str:
        text = self._catalog.text(found.path) or ""
        if not found.references:
            return text
        listed = "\n".join(f"- {found.path}/{file}" for file in found.references)
        return f"{text}\n\nFiles that belong to it, each read with skill(name):\n{listed}"

    def _nearest(self, name: str) -> ToolOutput:
        matching = self._catalog.search(name)[:10] or ()
        if matching:
            listed = "\n".join(f"- {skill.path}: {skill.description}" for skill in matching)
            return ToolOutput(f"No skill is named {name!r}; these speak of it:\n{listed}")
        return ToolOutput(f"There is no skill {name!r}; skill('') lists them.", is_error=True)


def _reference(found: Skill, file: str) -> str:
    """One of the skill's own files. Raises ToolFailed for any other."""
    if file not in found.references:
        known = ", ".join(found.references) or "none"
        raise ToolFailed(f"{found.path} has no file {file!r}; its files are: {known}")
    root = Path(found.file).parent.resolve()
    path = (root / file).resolve()
    if not path.is_relative_to(root):
        raise ToolFailed(f"{found.path}/{file} leads out of the skill's directory, so it is not read")
    try:
        with path.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(MOST_REFERENCE_CHARS)
    except OSError as problem:
        raise ToolFailed(f"{found.path}/{file} cannot be read: {problem.strerror}") from problem


_SPEC = ToolSpec(
    SKILL,
    "Read a skill: written know-how for one kind of work. name: empty lists the skills; a skill's name gives "
    "its text and the files that belong to it; NAME/FILE gives one of those files; other words search.",
    {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "a skill, NAME/FILE, words, or empty"}},
        "required": ["name"],
        "additionalProperties": False,
    },
    effects=READS,
    idempotent=True,
)
