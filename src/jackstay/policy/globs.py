"""Does a path match a pattern in which `*` stays within a segment and `**` crosses them?"""

import re
from functools import lru_cache


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meaning.get(piece, re.escape(piece)) for piece in pieces) + r"\Z", re.DOTALL)


def matches(pattern: str, path: str) -> bool:
    """Does the whole path match?"""
    return _compiled(pattern).match(path) is not None
