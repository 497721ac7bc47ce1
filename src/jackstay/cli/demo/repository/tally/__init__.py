"""Split a bill among friends, to the cent."""

from tally.receipt import receipt
from tally.split import shares

__all__ = ["receipt", "shares"]
