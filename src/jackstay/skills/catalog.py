"""Which skills are there, and how is one found by name?

Places, the nearest first: the project's `.jackstay/skills` and `.agents/skills`, the home's, the user's
`~/.agents/skills`, and the six that ship. A skill's full path is `namespace:name`.
"""

import os
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

from msgspec import Struct

from jackstay.skills.frontmatter import BadSkill, read_skill

OURS = "work-principles"
MAX_SKILLS = 500
MAX_DEPTH = 4
Origin = Literal["project", "home", "user", "built-in"]


class Skill(Struct, frozen=True, gc=False):
    """A skill that was found. `path` is its full name, `file` its SKILL.md; the body is read when asked for."""

    name: str
    path: str
    description: str
    file: str
    origin: Origin

    @property
    def references(self) -> tuple[str, ...]:
        """Files that belong to the skill, relative to its directory."""
        root = Path(self.file).parent
        found = [file for file in sorted(root.rglob("*")) if file.is_file() and file != Path(self.file)]
        return tuple(str(file.relative_to(root)) for file in found[:100])


class Found(Struct, frozen=True, gc=False):
    """The skills of all places, the nearest of a name first, and what is wrong with others."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()


class Place(Struct, frozen=True, gc=False):
    """A directory that may hold skills, and the namespace of those in it."""

    directory: str
    origin: Origin
    namespace: str


def places(*, workspace: str | None, home: str | None, user: str | None = None) -> tuple[Place, ...]:
    """Where skills are looked for, the nearest first.

    `home` is the harness's, `user` the person's home directory. A skill grants nothing: where it lies decides
    only which one of a name is found first.
    """
    found: list[Place] = []
    if workspace is not None:
        found += [
            Place(f"{workspace}/{name}/skills", "project", "project") for name in (".jackstay", ".agents")
        ]
    if home is not None:
        found.append(Place(f"{home}/skills", "home", "home"))
    if user is not None:
        found.append(Place(f"{user}/.agents/skills", "user", "user"))
    return (*found, Place(str(files("jackstay.skills") / "data"), "built-in", OURS))


class Catalog:
    """The skills of some places. Reads each file once until `refresh`."""

    def __init__(self, where: Iterable[Place]) -> None:
        self._places = tuple(where)
        self._found: Found | None = None

    @property
    def found(self) -> Found:
        """Everything there is, and what is wrong with the rest."""
        if self._found is None:
            self._found = _find(self._places)
        return self._found

    def refresh(self) -> None:
        """Look again at the next question."""
        self._found = None

    def get(self, name: str) -> Skill | None:
        """The skill of a full path, or the nearest one of a plain name; None when there is none."""
        matching = [skill for skill in self.found.skills if name in (skill.path, skill.name)]
        return matching[0] if matching else None

    def text(self, name: str, *, language: str = "en") -> str | None:
        """A skill's body, in its Chinese twin's words where there is one and Chinese is asked for.

        Raises BadSkill when the file has become unreadable since it was found.
        """
        skill = self.get(name)
        if skill is None:
            return None
        file = Path(skill.file)
        twin = file.with_name(f"SKILL.{language}.md")
        return read_skill(twin if language != "en" and twin.is_file() else file).body

    def names(self) -> tuple[str, ...]:
        """The full paths, sorted."""
        return tuple(sorted(skill.path for skill in self.found.skills))

    def search(self, words: str) -> tuple[Skill, ...]:
        """The skills whose name or description holds every word, names first."""
        wanted = words.lower().split()
        matching = [
            skill for skill in self.found.skills
            if all(word in f"{skill.path} {skill.description}".lower() for word in wanted)
        ]  # fmt: skip
        return tuple(sorted(matching, key=lambda skill: sum(word not in skill.name for word in wanted)))

    def listing(self, *, described: int = 20) -> str:
        """What a model reads of them: with descriptions up to `described` skills, names only beyond."""
        skills = sorted(self.found.skills, key=lambda skill: skill.path)
        if not skills:
            return ""
        if len(skills) <= described:
            return "\n".join(f"- {skill.path}: {skill.description}" for skill in skills)
        return f"{len(skills)} skills (ask for one by name, or search): " + ", ".join(
            skill.path for skill in skills
        )


def _find(where: tuple[Place, ...]) -> Found:
    skills: list[Skill] = []
    problems: list[str] = []
    taken: dict[str, str] = {}
    for place in where:
        for file in _files(Path(place.directory)):
            if len(skills) >= MAX_SKILLS:
                return Found(
                    tuple(skills), (*problems, f"more than {MAX_SKILLS} skills: the others are not read")
                )
            try:
                read = read_skill(file)
            except BadSkill as problem:
                problems.append(str(problem))
                continue
            path = f"{place.namespace}:{read.name}"
            if read.name != file.parent.name:
                problems.append(f"{file}:1: the skill {read.name!r} lies in a directory of another name")
            if path in taken:
                problems.append(f"{file}:1: {path} is already at {taken[path]}")
                continue
            taken[path] = str(file)
            skills.append(Skill(read.name, path, read.description, str(file), place.origin))
    return Found(tuple(skills), tuple(problems))


def _files(root: Path) -> Iterator[Path]:
    """The SKILL.md files below a directory, sorted; links are followed, but no deeper than a few levels."""
    depth = len(root.parts)
    for directory, names, found in os.walk(root, followlinks=True):
        here = Path(directory)
        names[:] = sorted(name for name in names if not name.startswith(".") and name != "node_modules")
        if len(here.parts) - depth >= MAX_DEPTH:
            names.clear()
        if "SKILL.md" in found:
            names.clear()  # what lies below a skill belongs to it
            yield here / "SKILL.md"
