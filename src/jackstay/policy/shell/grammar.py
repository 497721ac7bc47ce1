"""Where does the shell grammar come from? Loaded on first use: importing the package costs nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Parser


@lru_cache(maxsize=1)
def parser() -> Parser:
    """The one parser of this process."""
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
