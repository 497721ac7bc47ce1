"""Who owes how much?"""


def shares(total_cents: int, people: int) -> list[int]:
    """Split an amount so that all of it is paid and no two shares differ by more than a cent."""
    if people < 1:
        raise ValueError("there is nobody to share the bill")
    share = total_cents // people
    return [share] * people
