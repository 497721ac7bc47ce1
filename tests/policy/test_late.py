"""A late pattern is the pattern; and every one of the package can be compiled."""

import importlib
import pkgutil
import re

import jackstay.policy
from jackstay.policy.late import _Late, late


def test_it_is_the_same_pattern_later() -> None:
    pattern = late(r"(?P<word>[a-z]+)", re.IGNORECASE)
    assert vars(pattern) == {"_said": (r"(?P<word>[a-z]+)", re.IGNORECASE)}, "nothing is compiled yet"
    assert [match["word"] for match in pattern.finditer("One two")] == ["One", "two"]
    assert pattern.sub("x", "One two") == "x x"
    assert sorted(vars(pattern)) == ["_said", "finditer", "sub"], "and from now on it is not asked again"


def test_every_late_pattern_can_be_compiled() -> None:
    names = [one.name for one in pkgutil.walk_packages(jackstay.policy.__path__, "jackstay.policy.")]
    modules = [importlib.import_module(name) for name in names]
    found = {id(one): one for module in modules for one in vars(module).values() if isinstance(one, _Late)}
    assert len(found) > 30
    for one in found.values():
        re.compile(*one._said)
