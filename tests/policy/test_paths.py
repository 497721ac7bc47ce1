"""Whose place is a path? Judged on canonical paths."""

import pytest

from jackstay.core.facts import Mark, PathFact, Use
from jackstay.policy.paths import danger, lexical, mark_of, refusal, sensitive, within


@pytest.mark.parametrize(
    ("path", "mark"),
    [
        ("/w/src/a.py", ""),
        ("/w/secrets.py", ""),
        ("/w/.env.example", ""),
        ("/w/.github/workflows/ci.yml", ""),
        ("/home/u/.claude/worktrees/x/src/a.py", ""),
        ("/var/tmp/x", ""),
        ("/w/.git/refs/heads/main", ""),
        ("/w/.git/hooks/pre-commit", "startup"),
        ("/w/.GIT/Hooks/pre-commit", "startup"),
        ("/w/.git/config", "startup"),
        ("/w/.git/modules/a/b/hooks/x", "startup"),
        ("/srv/repo.git/hooks/update", "startup"),
        ("/home/u/.bashrc", "startup"),
        ("/home/u/.zshrc", "startup"),
        ("/home/u/.profile", "startup"),
        ("/home/u/.gitconfig", "startup"),
        ("/w/.jackstay/config.toml", "startup"),
        ("/etc/profile.d/x.sh", "startup"),
        ("/home/u/.ssh/authorized_keys", "credentials"),
        ("/w/.env", "credentials"),
        ("/w/.env.production", "credentials"),
        ("/w/server-key.pem", "credentials"),
        ("/w/cert.pem", ""),
        ("/home/u/.aws/credentials", "credentials"),
        ("/home/u/.docker/config.json", "credentials"),
        ("/etc/shadow", "credentials"),
        ("/proc/self/environ", "credentials"),
        ("/proc/1/environ", "credentials"),
        ("/home/u/.claude/settings.json", "host"),
        ("/w/.claude/settings.local.json", "host"),
        ("/home/u/.claude.json", "host"),
        ("/w/.claude/commands/x.md", "startup"),
        ("/w/.mcp.json", "startup"),
        ("/home/u/.hermes/config.yaml", "host"),
        ("/home/u/.hermes/plugins/x/__init__.py", "host"),
        ("/data/js/sessions.db", "harness"),
        ("/data/js", "harness"),
        ("/etc/passwd", "system"),
        ("/root/.x", "system"),
        ("/dev/sda", "system"),
    ],
)
def test_places_have_owners(path: str, mark: Mark) -> None:
    assert mark_of(path, ("/data/js",)) == mark


@pytest.mark.parametrize(
    ("path", "mark"),
    [
        ("/data", "harness"),
        ("/w/.git", "startup"),
        ("/home/u/.claude", "host"),
        ("/home/u", ""),
        ("/data2", ""),
    ],
)
def test_removing_a_directory_counts_for_what_is_in_it(path: str, mark: Mark) -> None:
    assert mark_of(path, ("/data/js",), use="deletes") == mark


@pytest.mark.parametrize(("use", "what"), [("writes", ""), ("deletes", "or what is in it ")])
def test_nothing_may_write_the_harness_or_its_host(use: Use, what: str) -> None:
    assert refusal(PathFact("~/.claude/settings.json", "/h/.claude/settings.json", use, mark="host")) == (
        f"'~/.claude/settings.json' {what}configures the agent's host and no call may change it"
    )
    assert refusal(PathFact("x", "/data/js/x", use, mark="harness")) is not None
    assert refusal(PathFact("x", "/h/.ssh/x", use, mark="credentials")) is None


def test_reading_the_own_home_is_not_refused() -> None:
    assert refusal(PathFact("x", "/data/js/x", "reads", mark="harness")) is None


def test_writing_hooks_and_credentials_is_dangerous_reading_hooks_is_not() -> None:
    hook = PathFact(".git/hooks/x", "/w/.git/hooks/x", "writes", inside=True, mark="startup")
    assert danger(hook) == "'.git/hooks/x' is run later by git or a shell"
    read = PathFact(".git/hooks/x", "/w/.git/hooks/x", "reads", inside=True, mark="startup")
    assert (danger(read), sensitive(read)) == (None, None)


def test_a_relative_path_that_leaves_the_workspace_is_sensitive() -> None:
    assert sensitive(PathFact("../x", "/x")) == "'../x' leaves the workspace"
    assert sensitive(PathFact("src/../x", "/w/x", inside=True)) is None
    assert sensitive(PathFact("/home/dev/project", "/home/dev/project")) is None


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("a/./b/../c", "/w/a/c"), ("/a//b/", "/a/b"), ("~/x", "/h/x"), ("~", "/h"), ("../../../x", "/x"),
        ("~root/x", ""), ("//x", "/x"),
    ],
)  # fmt: skip
def test_lexical(path: str, meant: str) -> None:
    assert lexical(path, "/w", "/h") == meant


def test_within_is_about_whole_segments() -> None:
    assert within("/w/a", "/w")
    assert within("/w", "/w")
    assert not within("/wx", "/w")
    assert not within("/w", "")
    assert within("/anything", "/")
