"""How does the whole work stand? One rolling account, rewritten with everything that expires."""

from jackstay.engine.compaction.keyinfo import positive
from jackstay.engine.compaction.summary import (
    NOTHING,
    RULES,
    Answers,
    Material,
    Section,
    SummaryJob,
    accepted,
    harmless,
    history,
    indented,
)
from jackstay.engine.compaction.tokens import text_tokens

TITLE = "Progress"

INSTRUCTION = (
    f"{RULES}\n\nYou keep one rolling account of the work. Merge the account so far with the newly expired "
    "history into an updated account: what is established, where the work stands, what each stage concluded, "
    "what is open. Keep what the account so far confirmed, drop repetitions and dead ends. Short statements, "
    f"no filler. If neither holds anything worth keeping, answer exactly: {NOTHING}"
)


class HierarchicalCompressionStrategy:
    """A rolling summary: the earlier account and the newly expired messages become the next account."""

    name = "hierarchical"

    def __init__(self, max_tokens: int = 2_000) -> None:
        """`max_tokens` bounds the account."""
        self._max = positive(max_tokens)

    def jobs(self, material: Material) -> tuple[SummaryJob, ...]:
        """One question: the account so far, then the new messages."""
        return (rolling_job(self.name, INSTRUCTION, TITLE, material, min(self._max, material.budget)),)

    def finish(self, material: Material, answers: Answers) -> tuple[Section, ...] | None:
        """The new account; the earlier one where the new found nothing."""
        return rolling_finish(TITLE, material, answers, min(self._max, material.budget))


def rolling_job(name: str, instruction: str, title: str, material: Material, budget: int) -> SummaryJob:
    """A question that carries the earlier text of the section along."""
    earlier = indented(harmless(material.earlier(title))) if material.earlier(title) else "none"
    room = material.window - budget - text_tokens(instruction) - text_tokens(earlier) - 64
    text = history(material.messages, room)
    question = (
        f"The account so far:\n\n{earlier}\n\nThe newly expired history:\n\n{text}\n\n"
        f"The updated account, in at most {budget} tokens:"
    )
    return SummaryJob(name, instruction, question, budget)


def rolling_finish(title: str, material: Material, answers: Answers, budget: int) -> tuple[Section, ...] | None:
    """The answer as the section, or the earlier text where there was nothing new; None when it failed."""
    text = accepted(answers[0] if answers else None, budget)
    if text is None:
        return None
    text = text or material.earlier(title)
    return (Section(title, text),) if text else ()
