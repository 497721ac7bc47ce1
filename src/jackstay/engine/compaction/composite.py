"""Several strategies over the same messages, each with its own share of the room."""

from msgspec.structs import replace

from jackstay.engine.compaction.summary import (
    Answers,
    CompressionStrategy,
    Material,
    Section,
    SummaryJob,
    asked_of,
    made_of,
)


class CompositeCompressionStrategy:
    """Runs its children in order on the same messages; one that fails does not touch the others."""

    name = "composite"

    def __init__(self, *strategies: CompressionStrategy) -> None:
        self._children = tuple(strategies)

    @property
    def strategies(self) -> tuple[CompressionStrategy, ...]:
        """Its strategies in their order."""
        return self._children

    def add_strategy(self, strategy: CompressionStrategy | None) -> "CompositeCompressionStrategy":
        """Add a child; None and the composite itself are left aside. Returns the composite."""
        if strategy is not None and strategy is not self:
            self._children = (*self._children, strategy)
        return self

    def jobs(self, material: Material) -> tuple[SummaryJob, ...]:
        """The questions of all children, in order."""
        share = self._share(material)
        return tuple(job for child in self._children for job in asked_of(child, share))

    def finish(self, material: Material, answers: Answers) -> tuple[Section, ...] | None:
        """The sections of all children that succeeded; None when every one failed.

        The sections that a failed child wrote earlier are carried over by whoever rebuilds the summary.
        """
        share = self._share(material)
        sections: list[Section] = []
        succeeded = False
        at = 0
        for child in self._children:
            count = len(asked_of(child, share))
            found = made_of(child, share, tuple(answers[at : at + count]))
            at += count
            if found is not None:
                succeeded = True
                sections.extend(found)
        return tuple(sections) if succeeded else None

    def _share(self, material: Material) -> Material:
        return replace(material, budget=material.budget // max(1, len(self._children)))
