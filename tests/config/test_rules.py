"""Rules from TOML: values, and errors that name file, line, key and mend."""

from pathlib import Path

import pytest

from jackstay.config.rules import LoadedRules, load_rules, parse_rules
from jackstay.core.errors import ConfigError
from jackstay.core.rules import PermissionRule

GOOD = """
model = "openai:x"

[[rules]]
tool = "bash"
behavior = "deny"
pattern = "git push *"
priority = 5
match = ["git push origin main", "ls && git push"]
not_match = ["git status"]

[[rules]]
tool = "write"
behavior = "allow"
pattern = "src/**"
"""


def test_rules_are_read_with_their_place() -> None:
    assert parse_rules(GOOD, where="r.toml") == LoadedRules(
        (
            PermissionRule(
                "bash", "deny", "git push *", 5, False, ("git push origin main", "ls && git push"), ("git status",),
                "r.toml:4",
            ),
            PermissionRule("write", "allow", "src/**", origin="r.toml:12"),
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[[rules]]\ntool = "bash"\nbehaviour = "deny"', "r.toml:3: behaviour: is not a key of a rule (did you mean 'behavior'?)"),
        ('[[rules]]\ntool = "bash"', "r.toml:1: behavior: is missing (every rule needs behavior =)"),
        ('[[rules]]\nbehavior = "deny"', "r.toml:1: tool: is missing (every rule needs tool =)"),
        ('[[rules]]\ntool = "bash"\nbehavior = "forbid"', "r.toml:3: behavior: 'forbid' is not one of allow, ask, deny"),
        ('[[rules]]\ntool = "bash"\nbehavior = "deny"\npriority = "high"', "r.toml:4: priority: 'high' is not a whole number"),
        ('[[rules]]\ntool = "bash"\nbehavior = "deny"\npriority = true', "r.toml:4: priority: True is not a whole number"),
        ('[[rules]]\ntool = "bash"\nbehavior = "deny"\nmatch = "x"', "r.toml:4: match: 'x' is not a list of texts"),
        ('[[rules]]\ntool = "bash"\nbehavior = "deny"\npattern = ""', "r.toml:4: pattern: '' is not a text"),
        ("rules = 3", "r.toml: rules: must be tables (begin each with [[rules]])"),
    ],
)  # fmt: skip
def test_errors_name_file_line_and_key(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rules(text, where="r.toml")
    assert str(caught.value) == error


def test_text_that_is_not_toml_and_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"r\.toml: is not TOML: Expected"):
        parse_rules("[[rules", where="r.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_rules(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        (
            'behavior = "deny"\npattern = "rm *"\nmatch = ["rmdir x"]',
            "does not cover its own example 'rmdir x'",
        ),
        ('behavior = "allow"\npattern = "git *"\nmatch = ["git log && rm x"]', "has to name every part"),
        (
            'behavior = "deny"\npattern = "rm *"\nnot_match = ["ls; rm x"]',
            "covers 'ls; rm x', which it must not",
        ),
    ],
)
def test_a_rule_that_fails_its_own_examples_is_refused(keys: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        parse_rules(f'[[rules]]\ntool = "bash"\n{keys}', where="r.toml")


def test_an_untrusted_project_can_narrow_but_not_widen() -> None:
    text = "\n".join(
        f'[[rules]]\ntool = "bash"\nbehavior = "{behavior}"\npattern = "x *"\npriority = 9'
        for behavior in ("allow", "ask", "deny")
    )
    loaded = parse_rules(text, where="p.toml", trusted=False)
    assert [(rule.behavior, rule.rank) for rule in loaded.rules] == [("ask", -1_000_000), ("deny", 9)]
    assert loaded.warnings[0] == (
        "p.toml:1: 'allow bash(x *)' is left out, since this project is not trusted and may only narrow what is "
        "allowed (`jackstay trust DIR` changes that)"
    )


def test_a_rule_that_can_never_speak_is_warned_about_with_the_one_that_hides_it() -> None:
    text = """
[[rules]]
tool = "bash"
behavior = "deny"
pattern = "git *"

[[rules]]
tool = "bash"
behavior = "allow"
pattern = "git push *"
"""
    assert parse_rules(text, where="r.toml").warnings == (
        "the rule 'allow bash(git push *)' (r.toml:7) can never speak: 'deny bash(git *)' (r.toml:2) answers first; "
        "raise its priority or remove one of them",
    )
