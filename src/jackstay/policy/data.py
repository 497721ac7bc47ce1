"""The discipline's words and tables as one value that may be replaced while sessions run."""

from string import Formatter

from msgspec import Struct, field

from jackstay.core.phase import Language, Phase, PhaseState
from jackstay.policy import approval_words
from jackstay.policy.approval_words import Words
from jackstay.policy.checklist import SEVEN, Item, required_ids
from jackstay.policy.guidance import (
    ENGLISH,
    MAX_CLOSING_TOKENS,
    MAX_TOKENS,
    TEXTS,
    Texts,
    phase_text,
    tokens,
)
from jackstay.policy.hints import HINTS, Hint
from jackstay.policy.markers import markers


class PolicyData(Struct, frozen=True, gc=False):
    """Texts per language, approval words, closing items, skill table.

    `language` overrides the one the user writes in. `skill_call` is how a host's model loads a skill, with the
    name for `{}`; None where the harness puts the skill's text before the model itself.
    """

    texts: dict[str, Texts] = field(default_factory=lambda: TEXTS)
    words: dict[str, Words] = field(default_factory=lambda: approval_words.LANGUAGES)
    items: tuple[Item, ...] = SEVEN
    hints: tuple[Hint, ...] = HINTS
    language: Language = ""
    skill_call: str | None = None

    @property
    def required(self) -> tuple[str, ...]:
        """The items without which nothing closes."""
        return required_ids(self.items)

    def texts_for(self, language: Language) -> Texts:
        """The texts in the configured language, else in the user's, else in English."""
        return self.texts.get(self.language or language or "en", self.texts["en"])


BUILT_IN = PolicyData()


def problems(data: PolicyData) -> list[str]:
    """What makes this data unfit to be used; empty when nothing does.

    Every language says everything English says, with the same fields; guidance fits its token limit, names its
    phase and declares no marker when quoted; approval words pass their own examples; the seed's items are
    there.
    """
    found = [f"approval words, {problem}" for problem in approval_words.problems(data.words)]
    if "en" not in data.texts:
        return [*found, "texts: English is missing"]
    for name, texts in data.texts.items():
        found += [f"texts, {name}: {problem}" for problem in _missing(texts)]
    if not found:
        for name, texts in data.texts.items():
            found += [f"texts, {name}: {problem}" for problem in _unfit(texts, data, name)]
    lost = {item.id for item in SEVEN} - set(data.required)
    found += [f"items: {item} has to stay required" for item in sorted(lost)]
    if len({item.id for item in data.items}) != len(data.items):
        found.append("items: an id is given twice")
    return found


def _missing(texts: Texts) -> list[str]:
    found = []
    for part in Texts.__struct_fields__:
        ours, theirs = getattr(ENGLISH, part), getattr(texts, part)
        found += [f"{part}[{key}] is missing" for key in ours if key not in theirs]
        found += [
            f"{part}[{key}] has other fields than the English one"
            for key in ours
            if key in theirs and _fields(theirs[key]) - _fields(ours[key])
        ]
    return found


def _fields(text: str) -> set[str]:
    try:
        return {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError:
        return {"broken braces"}


def _unfit(texts: Texts, data: PolicyData, language: str) -> list[str]:
    found = []
    for phase in texts.phases:
        state = PhaseState(phase, returns_to=Phase.TASK_STARTED, required=data.required)
        text = phase_text(state, texts, items=data.items, language=language) or ""
        limit = MAX_CLOSING_TOKENS if phase is Phase.CLOSING else MAX_TOKENS
        if tokens(text) > limit:
            found.append(f"phases[{phase}] is about {tokens(text)} tokens long, at most {limit} are allowed")
        if phase.value not in text:
            found.append(f"phases[{phase}] does not name its phase")
    everything = [text for part in Texts.__struct_fields__ for text in getattr(texts, part).values()]
    found += [f"{text[:40]!r} would declare a marker when quoted" for text in everything if markers(text)]
    return found
