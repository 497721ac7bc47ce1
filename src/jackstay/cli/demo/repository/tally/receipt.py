"""What does a bill look like?"""

from tally.split import shares


def receipt(title: str, total_cents: int, names: list[str]) -> str:
    """A line per person, and the total under it."""
    owed = shares(total_cents, len(names))
    lines = [f"{name:<10}{cents / 100:>8.2f}" for name, cents in zip(names, owed, strict=True)]
    return "\n".join([title, *lines, f"{'total':<10}{sum(owed) / 100:>8.2f}"])
