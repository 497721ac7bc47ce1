"""Are there credentials in these files?"""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from jackstay.core.phase import Finding
from jackstay.policy.checklist import CREDENTIAL_SCAN, Checked
from jackstay.policy.secrets import secrets_in

MAX_BYTES = 2_000_000  # of one file; what is larger is said to be unread, never passed over
MAX_FOUND = 50


class Leak(Struct, frozen=True, gc=False):
    """A credential in a file: where, and of which kind; never the credential itself."""

    path: str
    line: int
    kind: str

    @property
    def text(self) -> str:
        """For people: `app.py:12 holds a github-token`."""
        return f"{self.path}:{self.line} holds a {self.kind}"


class Scan(Struct, frozen=True, gc=False):
    """What a scan found, how much it read, and what it could not read (path: why)."""

    leaks: tuple[Leak, ...] = ()
    files: int = 0
    unread: tuple[str, ...] = ()


def scan(paths: Iterable[str]) -> Scan:
    """Look for credentials in files; those that are gone are clean, those that cannot be read are named."""
    leaks: list[Leak] = []
    unread: list[str] = []
    files = 0
    for path in dict.fromkeys(paths):
        text, problem = _text(Path(path))
        if problem:
            unread.append(f"{path}: {problem}")
        if text is None:
            continue
        files += 1
        leaks += _leaks(path, text)
    return Scan(tuple(leaks[:MAX_FOUND]), files, tuple(unread))


def checked(found: Scan) -> Checked:
    """A scan as the result of the closing item: leaks have to go, what nobody could read is accounted for."""
    findings = [Finding(CREDENTIAL_SCAN, leak.path, leak.text) for leak in found.leaks]
    findings += [Finding(CREDENTIAL_SCAN, line.split(": ", 1)[0], line, residue=False) for line in found.unread]
    count = len(found.leaks)
    summary = (
        f"scanned {found.files} changed files, {count or 'no'} credential{'' if count == 1 else 's'} found"
    )
    return Checked(not found.leaks, summary, tuple(findings))


_SETTINGS = frozenset({
    ".env", ".envrc", ".ini", ".cfg", ".cnf", ".conf", ".config", ".toml", ".yaml", ".yml", ".json",
    ".properties", ".xml", ".tfvars", ".credentials",
})  # fmt: skip
_NAMED = (".env", "env.", "dockerfile", ".pgpass", ".netrc", "credentials", "secrets.")


def is_config(path: str) -> bool:
    """Does the file hold settings, by its name?"""
    name = Path(path).name.lower()
    return name.startswith(_NAMED) or not _SETTINGS.isdisjoint(Path(name).suffixes)


def _leaks(path: str, text: str) -> list[Leak]:
    found: list[Leak] = []
    at, line = 0, 1
    for secret in secrets_in(text, config=is_config(path)):
        line += text.count("\n", at, secret.start)
        at = secret.start
        found.append(Leak(path, line, secret.kind))
    return found


def _text(path: Path) -> tuple[str | None, str]:
    """The file's text, or why there is none; a link is followed, a directory holds no text."""
    try:
        if not path.exists() or path.is_dir():
            return None, ""
        if not path.is_file():
            return None, "not a regular file"
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as problem:
        return None, str(problem.strerror or problem)
    over = f"only its first {MAX_BYTES} bytes were read" if len(data) > MAX_BYTES else ""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return data[:MAX_BYTES].decode(encoding, "replace"), over
