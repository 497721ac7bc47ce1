"""What was done and found, in a few sentences: the plainest summary."""

from typing import ClassVar

from jackstay.engine.compaction.hierarchy import rolling_finish, rolling_job
from jackstay.engine.compaction.keyinfo import positive
from jackstay.engine.compaction.summary import NOTHING, RULES, Answers, Material, Section, SummaryJob

TITLE = "Summary of the work"

INSTRUCTION = (
    f"{RULES}\n\nSummarise the operations carried out, the key findings and the progress in at most 150 words, "
    "taking up the account so far. No pleasantries. If there is nothing to tell, answer exactly: "
    f"{NOTHING}"
)


class LLMCompressionStrategy:
    """A short summary by the model of what was done, found and reached."""

    name: ClassVar[str] = "llm"

    def __init__(self, max_tokens: int = 600) -> None:
        """`max_tokens` bounds the summary."""
        self._max = positive(max_tokens)

    def jobs(self, material: Material) -> tuple[SummaryJob, ...]:
        """One question: the earlier summary, then the new messages."""
        return (rolling_job(self.name, INSTRUCTION, TITLE, material, min(self._max, material.budget)),)

    def finish(self, material: Material, answers: Answers) -> tuple[Section, ...] | None:
        """The new summary; the earlier one where there was nothing to tell."""
        return rolling_finish(TITLE, material, answers, min(self._max, material.budget))
