"""Rules about places that are reached by links."""

from pathlib import Path

from jackstay.core.rules import PermissionRule as Rule
from jackstay.ward.roots import rooted


def test_a_pattern_below_a_link_also_means_where_the_link_leads(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name in ("real/sub", "home", "work"):
        (root / name).mkdir(parents=True)
    (root / "link").symlink_to(root / "real")
    (root / "work" / "out").symlink_to(root / "real" / "sub")
    (root / "home" / "notes").symlink_to(root / "real")
    rules = (
        Rule.deny("write", f"{root}/link/**"),
        Rule.allow("read", "out/*.txt").priority(3),
        Rule.ask("edit", "~/notes/a"),
        Rule.deny("write", f"{root}/real/**"),
        Rule.deny("write", "**/x"),
        Rule.deny("bash", f"cat {root}/link/*"),
        Rule.deny("write"),
    )
    assert rooted(rules, str(root / "work"), str(root / "home")) == (
        rules[0], Rule.deny("write", f"{root}/real/**"),
        rules[1], Rule.allow("read", f"{root}/real/sub/*.txt").priority(3),
        rules[2], Rule.ask("edit", f"{root}/real/a"),
        *rules[3:],
    )  # fmt: skip
