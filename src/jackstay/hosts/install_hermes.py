"""How do the two plugins come to Hermes and go again? Every step is told first; done twice, nothing is done.

Code and skills lie in a private copy, `JACKSTAY_HOME/hermes/{plugins,skills}`; Hermes gets links to it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from msgspec import Struct

from jackstay._version import __version__
from jackstay.config.paths import ensure_private
from jackstay.core.errors import ConfigError
from jackstay.hosts.hermes_config import enabled, switched_off, switched_on
from jackstay.hosts.hermes_names import SKILLS

PLUGINS = ("work-principles", "context-anchor")
HOOKS = {
    "work-principles": "pre_llm_call, pre_tool_call, post_tool_call",
    "context-anchor": "pre_llm_call, post_tool_call",
}
_PACKAGES = ("jackstay", "msgspec", "tree_sitter", "tree_sitter_bash", "platformdirs")
PROBE_TIMEOUT_S = 60.0
Way = Literal["links", "entry-point"]


class Step(Struct, frozen=True):
    """One thing to be done: `text` says it before, `do` does it."""

    text: str
    do: Callable[[], object]


class Places(Struct, frozen=True):
    """`home` is JACKSTAY_HOME, `hermes` Hermes's home (`~/.hermes`, or HERMES_HOME).

    `folder` is where the private copy lies, if not in `home`.
    """

    home: Path
    hermes: Path
    folder: Path | None = None

    @property
    def copy(self) -> Path:
        """The private copy."""
        return self.folder or self.home / "hermes"

    @property
    def config(self) -> Path:
        """Hermes's configuration."""
        return self.hermes / "config.yaml"

    @property
    def backup(self) -> Path:
        """Hermes's configuration as it was before us."""
        return self.home / "hosts" / "hermes-config.yaml"

    @property
    def written(self) -> Path:
        """The same file as we left it: unchanged since, it is brought back byte for byte."""
        return self.home / "hosts" / "hermes-config.written.yaml"


def places(home: Path) -> Places:
    """Where Hermes of this user lives."""
    return Places(home, Path(os.environ.get("HERMES_HOME") or Path.home() / ".hermes"))


# -- install ---------------------------------------------------------------------------------------------


def install_steps(at: Places, way: Way = "links") -> list[Step]:
    """What `install` would do now, in order; [] when everything is done. Raises ConfigError."""
    if not at.hermes.is_dir():
        raise ConfigError(
            f"{at.hermes} is not there", hint="install and start Hermes first, or set HERMES_HOME"
        )
    steps = list(_copy_steps(at))
    links = _links(at, way)
    for link, target in links.items():
        if _points(link, target):
            continue
        if os.path.lexists(link) and not link.is_symlink():
            raise ConfigError(f"{link} is there and is not ours", hint="move it away, then install again")
        steps.append(Step(f"link {link} -> {target}", partial(_link, link, target)))
    before = _text(at.config)
    after = switched_on(before, PLUGINS, where=str(at.config))
    if after != before:
        text = f"enable {' and '.join(PLUGINS)} in {at.config} (a copy is kept in {at.backup})"
        steps.append(Step(text, lambda: _write_config(at, before, after)))
    return steps


def private_copy(at: Places) -> list[Step]:
    """What brings the private copy up to date; [] when it is."""
    return list(_copy_steps(at))


def _copy_steps(at: Places) -> Iterator[Step]:
    for path, content in _contents(at).items():
        if not path.is_file() or path.read_bytes() != content:
            yield Step(f"write {path}", partial(_write, at, path, content))


def _contents(at: Places) -> dict[Path, bytes]:
    """Every file of the private copy. Skills that are there keep what was written into them."""
    package = Path(__file__).parents[1]
    found: dict[Path, bytes] = {}
    for name in PLUGINS:
        folder, source = at.copy / "plugins" / name, package / "hosts" / "hermes_plugins"
        manifest = (source / f"{name}.yaml").read_text("utf-8").replace("@VERSION@", __version__)
        found[folder / "plugin.yaml"] = manifest.encode()
        found[folder / "__init__.py"] = (source / "linked.py").read_bytes()
        found[folder / "place.py"] = _place(at).encode()
    for name in SKILLS:
        source = package / "skills" / "data" / name
        for file in sorted(path for path in source.rglob("*") if path.is_file()):
            place = at.copy / "skills" / name / file.relative_to(source)
            if not place.exists():
                found[place] = file.read_bytes()
    return found


def _place(at: Places) -> str:
    """Where the linked plugins find jackstay when Hermes's own environment does not have it."""
    specs = [spec for name in _PACKAGES if (spec := find_spec(name)) is not None]
    paths = list(dict.fromkeys(str(Path(spec.origin).parents[1]) for spec in specs if spec.origin))
    return (
        '"""Written by `jackstay host install hermes`: where jackstay and its home lie."""\n\n'
        f"HOME = {str(at.home)!r}\nPYTHON = {sys.implementation.cache_tag!r}\nPATHS = {paths!r}\n"
    )


def _links(at: Places, way: Way) -> dict[Path, Path]:
    plugins = {at.hermes / "plugins" / name: at.copy / "plugins" / name for name in PLUGINS if way == "links"}
    return plugins | {at.hermes / "skills" / "devops" / name: at.copy / "skills" / name for name in SKILLS}


def _write(at: Places, path: Path, content: bytes) -> None:
    ensure_private(at.home)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(content)
    beside.replace(path)


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    beside = link.with_name(f".{link.name}.new")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(link)


def _write_config(at: Places, before: str, after: str) -> None:
    ensure_private(at.home)
    at.backup.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    at.backup.write_text(before, "utf-8")
    at.written.write_text(after, "utf-8")
    mode = at.config.stat().st_mode & 0o777 if at.config.exists() else 0o600
    beside = at.config.with_name(".config.yaml.jackstay")
    beside.write_text(after, "utf-8")
    beside.chmod(mode)
    beside.replace(at.config)


# -- uninstall -------------------------------------------------------------------------------------------


def uninstall_steps(at: Places) -> list[Step]:
    """What `uninstall` would do now; sessions, backups and audit stay. Raises ConfigError."""
    steps = []
    before = _text(at.config)
    if at.config.exists():
        whole = at.backup.exists() and at.written.exists() and _text(at.written) == before
        after = _text(at.backup) if whole else switched_off(before, PLUGINS, where=str(at.config))
        if after != before:
            how = "as it was before" if whole else "without the two plugins"
            steps.append(Step(f"write {at.config} {how}", lambda: _restore_config(at, after)))
    for link, target in _links(at, "links").items():
        if _points(link, target):
            steps.append(Step(f"remove the link {link}", link.unlink))
    if at.copy.is_dir():
        steps.append(Step(f"remove {at.copy}", lambda: shutil.rmtree(at.copy)))
    return steps


def _restore_config(at: Places, text: str) -> None:
    if not text:
        at.config.unlink()
    else:
        mode = at.config.stat().st_mode & 0o777
        beside = at.config.with_name(".config.yaml.jackstay")
        beside.write_text(text, "utf-8")
        beside.chmod(mode)
        beside.replace(at.config)
    at.backup.unlink(missing_ok=True)
    at.written.unlink(missing_ok=True)


# -- status ----------------------------------------------------------------------------------------------


def status_lines(at: Places) -> list[str]:
    """One line a plugin as the second seed prints them, `enabled` only when Hermes would load it."""
    try:
        on = enabled(_text(at.config), where=str(at.config))
    except ConfigError as problem:
        return [str(problem)]
    return [f"{name}  {_state(at, name, on)}  {HOOKS[name]}" for name in PLUGINS]


def _state(at: Places, name: str, on: list[str]) -> str:
    link = at.hermes / "plugins" / name
    if link.is_symlink() and not link.exists():
        return "broken (the link leads nowhere: Hermes runs without it; install again)"
    if not (link / "__init__.py").exists() and not _entry_point(name):
        return "not installed"
    return "enabled" if name in on else "not enabled"


def _entry_point(name: str) -> bool:
    from importlib.metadata import entry_points

    return any(point.name == name for point in entry_points(group="hermes_agent.plugins"))


_PROBE = """
import sys
from hermes_cli.plugins import discover_plugins, resolve_pre_tool_block
discover_plugins()
print("JACKSTAY", resolve_pre_tool_block("write_file", {"path": "/nonexistent/jackstay-probe", "content": ""},
      task_id="jackstay-probe", session_id="jackstay-probe", tool_call_id="probe"))
"""


def probe(at: Places, hermes: str | None = None) -> str | None:
    """What Hermes answers to a forbidden call through its own hooks: the refusal; None when the guard is off.

    `hermes` is the program (default: the one on PATH). Raises ConfigError when there is none, or it fails.
    """
    program = hermes or shutil.which("hermes")
    if program is None:
        raise ConfigError("there is no `hermes` on PATH", hint="give its path, or start its environment")
    first = Path(program).read_bytes().split(b"\n", 1)[0].decode("utf-8", "replace")
    python = first.removeprefix("#!").strip() if first.startswith("#!") else ""
    if not Path(python).is_file():
        raise ConfigError(
            f"{program} does not say which Python it runs", hint="give the one of its environment"
        )
    environment = {**os.environ, "HERMES_HOME": str(at.hermes), "JACKSTAY_HOME": str(at.home)}
    try:
        done = subprocess.run(
            [python, "-c", _PROBE], env=environment, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S,
            check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as problem:
        raise ConfigError(f"Hermes could not be asked: {problem}") from problem
    said = next((line for line in done.stdout.splitlines() if line.startswith("JACKSTAY ")), "JACKSTAY None")
    answer = said.removeprefix("JACKSTAY ")
    return None if answer == "None" else answer


def _points(link: Path, target: Path) -> bool:
    return link.is_symlink() and link.readlink() == target


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", newline="") as opened:  # line ends as they are
            return opened.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{file} cannot be read: {problem}") from problem
