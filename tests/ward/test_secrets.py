"""Planted secrets are found, ordinary source is left alone, and what is redacted is gone."""

import sysconfig
from collections import Counter
from pathlib import Path
from random import Random
from re import _parser  # type: ignore[attr-defined]  # nothing else says how little a pattern can match
from secrets import randbits

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ward import planted

from jackstay.policy.believable import entropy
from jackstay.policy.secret_kinds import KINDS
from jackstay.policy.secrets import LEAST_CHARS, plain, problems, redact, secrets_in
from jackstay.ward.redact import redact_value
from jackstay.ward.scan import Leak, checked, scan


def test_the_table_s_own_examples_hold() -> None:
    assert problems() == []


def test_no_kind_fits_into_fewer_characters_than_redact_looks_at() -> None:
    assert min(_parser.parse(kind.pattern).getwidth()[0] for kind in KINDS) >= LEAST_CHARS


def test_at_least_95_percent_of_freshly_made_secrets_of_fifty_kinds_are_found() -> None:
    seed = randbits(32)
    found, missed = Counter(), Counter()
    for kind, text in planted.planted(seed=seed, rounds=40):
        (found if secrets_in(text) else missed)[kind] += 1
    assert len(found) >= 50
    assert sum(found.values()) / (sum(found.values()) + sum(missed.values())) >= 0.95, (seed, missed)
    # and no kind is left out: a scan that misses one kind always would hide behind the average
    assert {kind for kind in missed if missed[kind] > 10} == set(), (seed, missed)


def test_at_least_95_percent_of_passwords_of_ordinary_words_are_found_in_files_of_settings(
    tmp_path: Path,
) -> None:
    seed = randbits(32)
    r, missed = Random(seed), Counter()
    for kind, (name, make) in planted.SETTINGS.items():
        file = tmp_path / name
        for _ in range(40):
            file.write_text(make(r))
            missed[kind] += not scan([str(file)]).leaks
    assert sum(missed.values()) <= 0.05 * 40 * len(planted.SETTINGS), (seed, missed)
    assert max(missed.values()) <= 10, (seed, missed)


@pytest.mark.parametrize("text", ["password=correct-horse-battery\n", "DB_PASSWORD: hunter2trustno1\n"])
def test_these_are_found_in_any_text(text: str) -> None:
    (secret,) = secrets_in(text)
    assert text[secret.start : secret.end] == text.split("=")[-1].split(": ")[-1].strip()


def test_at_most_one_false_alarm_in_ten_thousand_lines_of_ordinary_source() -> None:
    lines, alarms = 0, []
    for file in (*_ordinary("stdlib"), *_ordinary("purelib")):
        text = file.read_text("utf-8", "replace")
        lines += text.count("\n")
        alarms += [(file.name, secret.kind, text[secret.start : secret.end]) for secret in secrets_in(text)]
    assert lines > 200_000
    assert len(alarms) / lines * 10_000 <= 1, alarms


def _ordinary(place: str) -> list[Path]:
    """The standard library, or what is installed beside us: always there. Every third file, without tests."""
    root = Path(sysconfig.get_path(place))
    others = {"test", "tests"} | ({"site-packages", "dist-packages"} if place == "stdlib" else set())
    files = [file for file in sorted(root.rglob("*.py")) if not others & set(file.relative_to(root).parts)]
    return files[::3]  # all of them take half a minute


@pytest.mark.parametrize("kind", [one for one in KINDS if not one.config], ids=lambda kind: kind.name)
def test_redacting_an_example_takes_the_secret_out_and_leaves_the_rest(kind: object) -> None:
    for example in kind.examples:  # type: ignore[attr-defined]  # pytest's ids want a plain parameter
        text = plain(example)
        cleaned = redact(text)
        for secret in secrets_in(text):
            assert text[secret.start : secret.end] not in cleaned
        assert "[redacted:" in cleaned


@given(st.text())
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.sampled_from(planted.planted(seed=7, rounds=3)), st.text(alphabet="ab \n.,", max_size=60))
def test_whatever_stands_around_it_a_planted_secret_does_not_survive(one: tuple[str, str], around: str) -> None:
    _, text = one
    secrets = [text[secret.start : secret.end] for secret in secrets_in(text)]
    cleaned = redact(f"{around}\n{text}\n{around}")
    assert not any(secret in cleaned for secret in secrets)


def test_a_text_without_secrets_is_the_same_object() -> None:
    text = "nothing to see here"
    assert redact(text) is text


def test_values_are_redacted_in_depth_and_judged_with_their_key() -> None:
    key = plain("ghp_¦R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5i")
    value = {"command": f"echo {key}", "env": {"password": "hunter2", "n": 3}, "list": [key, None, True]}
    assert redact_value(value) == {
        "command": "echo [redacted:github-token]",
        "env": {"password": "[redacted:password]", "n": 3},
        "list": ["[redacted:github-token]", None, True],
    }
    assert value["list"][0] == key


def test_entropy_is_bits_a_character() -> None:
    assert entropy("") == 0
    assert entropy("aaaa") == 0
    assert entropy("abab") == 1
    assert entropy("abcd") == 2


@pytest.mark.parametrize(
    "hard",
    ["password: token key " * 20_000, "eyJ" * 100_000, "token=" * 50_000, "a://" * 100_000, "curl -u a " * 40_000,
     "-----BEGIN PRIVATE KEY-----\n" * 10_000, 'password = "hunter2"\n' * 10_000, "'" * 300_000, "A" * 500_000,
     "-----BEGIN PRIVATE KEY-----\n" + "A" * 30 + "\n" + "Proc-Type: 4\n" * 30_000, "İ" * 50_000 + "password"],
    ids=lambda text: text[:12],
)  # fmt: skip
@pytest.mark.timeout(20)
def test_no_text_takes_long(hard: str) -> None:
    redact(hard)


# -- files -------------------------------------------------------------------------------------------------


def test_a_scan_names_file_line_and_kind_and_never_the_secret(tmp_path: Path) -> None:
    secret = plain("ghp_¦R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5i")
    bad, clean, gone = tmp_path / "app.py", tmp_path / "ok.py", tmp_path / "gone.py"
    bad.write_text(f"import os\n\nTOKEN = '{secret}'\n")
    clean.write_text("print(1)\n")
    found = scan([str(bad), str(clean), str(gone), str(tmp_path)])
    assert found.leaks == (Leak(str(bad), 3, "github-token"),)
    assert found.files == 2
    told = checked(found)
    assert not told.ok
    assert [finding.subject for finding in told.findings] == [str(bad)]
    assert secret not in repr(told)


def test_a_clean_scan_is_ok_and_says_how_much_it_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x = 1\n")
    assert checked(scan([str(tmp_path / "a")])).summary == "scanned 1 changed files, no credentials found"


def test_what_cannot_be_read_is_named_and_has_to_be_accounted_for(tmp_path: Path) -> None:
    big = tmp_path / "big.bin"
    big.write_bytes(b"\0" * 2_000_001)
    told = checked(scan([str(big)]))
    assert told.ok
    assert [(one.subject, one.residue) for one in told.findings] == [(str(big), False)]


def test_other_encodings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "wide.txt"
    file.write_text('password = "hunter2"\n', "utf-16")
    assert [leak.kind for leak in scan([str(file)]).leaks] == ["password"]
