"""Where does the shell grammar come from? Loaded on first use: importing the package costs nothing."""

from __future__ import annotations

from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from tree_sitter import Parser


@lru_cache(maxsize=1)
def parser() -> Parser:
    """The one parser of this process."""
    import tree_sitter

    return tree_sitter.Parser(tree_sitter.Language(_grammar()))


def _grammar() -> object:
    """The grammar from the package's one extension module.

    Not by importing the package: its `__init__` loads a third of the standard library for queries that nobody
    here asks for, and each hook of a host waits for that.
    """
    package = find_spec("tree_sitter_bash")
    places = package.submodule_search_locations if package is not None else None
    binding = PathFinder.find_spec("tree_sitter_bash._binding", places)
    if binding is None or binding.loader is None:
        raise ImportError("the package tree-sitter-bash is not installed: pip install tree-sitter-bash")
    module = module_from_spec(binding)
    binding.loader.exec_module(module)
    return cast("object", module.language())
