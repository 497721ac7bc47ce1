"""Which facts of the expiring messages must not be lost? They are gathered, never rewritten."""

from jackstay.core.errors import ConfigError
from jackstay.engine.compaction.summary import (
    NOTHING,
    RULES,
    Answers,
    Material,
    Section,
    SummaryJob,
    accepted,
    history,
)
from jackstay.engine.compaction.tokens import text_tokens

TITLE = "Confirmed key information"

INSTRUCTION = (
    f"{RULES}\n\nYou are the auditor. List only what is certain and will be needed later: parameters of the "
    "task, verified facts, technical identifiers, and ways that were tried and failed. A Markdown list, one "
    "short fact in each line, no headings, nothing guessed, nothing polite. If there is nothing of that "
    f"kind, answer exactly: {NOTHING}"
)


class KeyInfoExtractionStrategy:
    """Keeps verified facts as a list: only new messages are read, earlier facts stand as they were."""

    name = "key_info"

    def __init__(self, max_tokens: int = 2_000) -> None:
        """`max_tokens` bounds the list; its oldest facts give way."""
        self._max = positive(max_tokens)

    def jobs(self, material: Material) -> tuple[SummaryJob, ...]:
        """One question about the new messages."""
        budget = min(self._max, material.budget)
        text = history(material.messages, material.window - budget - text_tokens(INSTRUCTION) - 64)
        question = f"The history:\n\n{text}\n\nThe list, in at most {budget} tokens:"
        return (SummaryJob(self.name, INSTRUCTION, question, budget),)

    def finish(self, material: Material, answers: Answers) -> tuple[Section, ...] | None:
        """Earlier facts followed by the new ones."""
        budget = min(self._max, material.budget)
        new = accepted(answers[0] if answers else None, budget)
        if new is None:
            return None
        facts = list(dict.fromkeys([*material.earlier(TITLE).splitlines(), *new.splitlines()]))
        facts = [fact for fact in facts if fact.strip()]
        while len(facts) > 1 and text_tokens("\n".join(facts)) > budget:
            facts = facts[max(1, len(facts) // 10) :]
        return (Section(TITLE, "\n".join(facts)),) if facts else ()


def positive(tokens: int) -> int:
    """The number, or ConfigError where it could hold nothing."""
    if tokens <= 0:
        problem = f"a summary of at most {tokens} tokens cannot hold anything"
        raise ConfigError(problem, hint="give max_tokens of 1 or more")
    return tokens
