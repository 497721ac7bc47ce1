"""The six skills that ship are valid; skills are found, named, searched, and faults are named with file and line."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackstay.policy.hints import ON_ENTRY
from jackstay.policy.markers import markers
from jackstay.policy.secrets import secrets_in
from jackstay.skills.catalog import Catalog, Place, places
from jackstay.skills.frontmatter import BadSkill, FrontMatter, parse, read_skill

SIX = (
    "change-safeguard",
    "credential-store-management",
    "deploy-register",
    "pre-action-research",
    "work-closure-check",
    "work-principles",
)
BUILT_IN = Catalog(places(workspace=None, home=None))


def skill(root: Path, name: str, description: str = "what it is for", body: str = "do it so") -> Path:
    file = root / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")
    return file


# -- the six -----------------------------------------------------------------------------------------------


def test_w13_all_six_are_found_by_their_full_path_without_a_problem() -> None:
    assert BUILT_IN.found.problems == ()
    assert BUILT_IN.names() == tuple(f"work-principles:{name}" for name in SIX)


@pytest.mark.parametrize("name", SIX)
def test_each_is_valid_in_both_languages_and_its_references_exist(name: str) -> None:
    found = BUILT_IN.get(f"work-principles:{name}")
    assert found is not None
    english, chinese = read_skill(Path(found.file)), read_skill(Path(found.file).with_name("SKILL.zh.md"))
    assert english.name == chinese.name == name
    assert 40 <= len(english.description) <= 1024
    assert len(english.body) > 1500
    han = sum("\u4e00" <= char <= "\u9fff" for char in chinese.body)
    assert han > 350
    assert english.body.count("\n## ") == chinese.body.count("\n## ")
    assert found.references
    for reference in found.references:
        if reference.startswith("references/"):
            assert reference in english.body
            assert reference in chinese.body


@pytest.mark.parametrize("name", SIX)
def test_none_names_a_skill_that_is_not_there_declares_a_marker_or_looks_like_a_leak(name: str) -> None:
    for language in ("en", "zh"):
        text = BUILT_IN.text(f"work-principles:{name}", language=language)
        assert text is not None
        named = [word.split("`")[0] for word in text.split("`work-principles:")[1:]]
        assert all(one in SIX for one in named), named
        assert markers(text) == ()
        assert secrets_in(text) == []


def test_every_skill_a_phase_wants_ships() -> None:
    assert all(BUILT_IN.get(name) is not None for name in ON_ENTRY.values())


# -- finding -----------------------------------------------------------------------------------------------


def test_places_the_nearest_first_and_the_full_path_is_never_shadowed(tmp_path: Path) -> None:
    work, home, user = tmp_path / "work", tmp_path / "home", tmp_path / "user"
    skill(work / ".jackstay/skills", "change-safeguard", "from the project")
    skill(work / ".agents/skills", "lint", "from the project's agents")
    skill(home / "skills" / "devops", "deploy", "from the home")
    skill(user / ".agents/skills", "mine", "from the user")
    catalog = Catalog(places(workspace=str(work), home=str(home), user=str(user)))
    by_path = {one.path: one for one in catalog.found.skills}
    assert {"project:change-safeguard", "project:lint", "home:deploy", "user:mine"} <= set(by_path)
    near, full = catalog.get("change-safeguard"), catalog.get("work-principles:change-safeguard")
    assert near is not None
    assert near.origin == "project"
    assert full is not None
    assert full.origin == "built-in"


def test_what_a_project_s_skill_says_of_itself_grants_nothing(tmp_path: Path) -> None:
    file = skill(tmp_path / "work/.agents/skills", "evil")
    file.write_text(
        "---\nname: evil\ndescription: d\nallowed-tools: '*'\nnamespace: work-principles\n---\nbody\n"
    )
    (found,) = [
        one
        for one in Catalog(places(workspace=str(tmp_path / "work"), home=None)).found.skills
        if one.name == "evil"
    ]
    assert found.path == "project:evil"
    assert not hasattr(found, "allowed_tools")


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    real = skill(tmp_path / "elsewhere", "linked").parent
    root = tmp_path / "home/skills"
    root.mkdir(parents=True)
    (root / "linked").symlink_to(real)
    (root / "loop").symlink_to(root)
    found = Catalog([Place(str(root), "home", "home")]).found
    assert [one.path for one in found.skills] == ["home:linked"]


def test_one_listing_describes_a_few_and_only_names_many(tmp_path: Path) -> None:
    few = BUILT_IN.listing()
    assert few.count("\n") == 5
    assert "- work-principles:deploy-register: How to register" in few
    many = BUILT_IN.listing(described=5)
    assert many.startswith("6 skills (ask for one by name, or search): work-principles:change-safeguard, ")
    assert Catalog([]).listing() == ""


def test_search_finds_by_every_word_names_first() -> None:
    assert [one.name for one in BUILT_IN.search("closing items")] == ["work-closure-check"]
    assert BUILT_IN.search("credential store")[0].name == "credential-store-management"
    assert BUILT_IN.search("no such thing at all") == ()


def test_a_skill_is_read_in_the_language_asked_for(tmp_path: Path) -> None:
    assert "调研" in (BUILT_IN.text("pre-action-research", language="zh") or "")
    skill(tmp_path, "only-english")
    catalog = Catalog([Place(str(tmp_path), "home", "home")])
    assert catalog.text("only-english", language="zh") == "do it so"
    assert catalog.text("nothing") is None


def test_a_new_skill_is_seen_after_a_refresh(tmp_path: Path) -> None:
    catalog = Catalog([Place(str(tmp_path), "home", "home")])
    assert catalog.names() == ()
    skill(tmp_path, "fresh")
    catalog.refresh()
    assert catalog.names() == ("home:fresh",)


def test_broken_skills_are_named_and_do_not_hide_the_others(tmp_path: Path) -> None:
    good = skill(tmp_path, "good")
    bad = skill(tmp_path, "bad")
    bad.write_text("no front matter")
    twice = skill(tmp_path / "deeper", "good")
    other = skill(tmp_path, "other-name")
    other.write_text(other.read_text().replace("name: other-name", "name: renamed"))
    found = Catalog([Place(str(tmp_path), "home", "home")]).found
    assert [one.name for one in found.skills] == ["good", "renamed"]
    assert found.problems == (
        f"{bad}:1: front matter is missing (begin the file with a line `---`)",
        f"{good}:1: home:good is already at {twice}",
        f"{other}:1: the skill 'renamed' lies in a directory of another name",
    )


# -- front matter ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", 1, "front matter is missing"),
        ("---\nname: x\n", 1, "front matter is not closed"),
        ("---\nname: x\n---\nbody", 1, "description is missing"),
        ("---\ndescription: d\n---\nbody", 1, "name is missing"),
        ("---\nname: x\ndescription: d\n---\n\n  \n", 5, "the skill has no body"),
        ("---\ndescription: d\nname: Not Good\n---\nbody", 3, "not small letters"),
        ("---\nname: x\ndescription: [a]\n---\nbody", 3, "description has to be a text"),
        ("---\nname: x\ndescription: 'a\n---\nbody", 3, "front matter is not YAML"),
        ("---\nname: x\n\tdescription: d\n---\nbody", 3, "front matter is not YAML"),
        ("---\n- a\n---\nbody", 2, "front matter is not a mapping"),
        (
            "---\nname: x\nmetadata:\ndescription: " + "d" * 1025 + "\n---\nbody",
            4,
            "description has 1025 characters",
        ),
        ("---\nname: x\nwhen: 2026-99-99\ndescription: d\n---\nbody", 2, "front matter cannot be read"),
    ],
)
def test_a_fault_is_named_with_file_and_line(text: str, where: int, what: str) -> None:
    with pytest.raises(BadSkill) as wrong:
        parse(text, Path("/s/x/SKILL.md"))
    assert str(wrong.value).startswith(f"/s/x/SKILL.md:{where}: ")
    assert what in str(wrong.value)


def test_other_keys_are_kept_as_data_and_null_is_no_crash() -> None:
    text = "---\r\nname: x\r\ndescription: >\r\n  two\r\n  lines\r\nmetadata:\r\n---\r\nbody\r\n"
    assert parse(text, Path("x")) == FrontMatter("x", "two lines", "body", {"metadata": None})


def test_yaml_makes_no_objects(tmp_path: Path) -> None:
    with pytest.raises(BadSkill):
        parse("---\nname: !!python/object/apply:os.getcwd []\ndescription: d\n---\nbody", Path("x"))


def test_what_is_no_text_or_too_large_is_named(tmp_path: Path) -> None:
    file = tmp_path / "SKILL.md"
    file.write_bytes(b"---\nname: x\n\xff")
    with pytest.raises(BadSkill, match="not UTF-8"):
        read_skill(file)
    file.write_bytes(b"x" * 256_001)
    with pytest.raises(BadSkill, match="at most"):
        read_skill(file)
    with pytest.raises(BadSkill, match="cannot be read"):
        read_skill(tmp_path / "gone.md")


@given(st.text(max_size=300))
@settings(max_examples=200)
def test_any_front_matter_is_a_skill_or_a_named_fault(text: str) -> None:
    with contextlib.suppress(BadSkill):
        parse(f"---\n{text}\n---\nbody", Path("x"))
