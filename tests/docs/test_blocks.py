"""Would a wrong document be noticed?"""

import os
from pathlib import Path

import pytest

from tests.docs.blocks import Stage

RIGHT = """\
Some words.

<!-- files: {"names.txt": "ada\\n"} -->
```python
from pathlib import Path
names = Path("names.txt").read_text().split()
print(names)
```

```text
['ada']
```

<!-- check:
assert names == ["ada"]
-->

<!-- server: [{"say": "Here."}] -->
```console
$ jackstay run --model m@http://127.0.0.1:8080/v1 "Are you there?"
Here.
…
$ false
$ echo $?
1
```

```toml
max_turns = 3
```

<!-- not run: it needs a machine that nobody has here -->
```python
raise SystemExit
```
"""


def run(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    path = tmp_path / "document.md"
    path.write_text(text, "utf-8")
    here = tmp_path / "here"
    here.mkdir()
    stage = Stage(path, here)
    monkeypatch.chdir(here)
    for name, value in stage.environment().items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    try:
        return stage.run()
    finally:
        assert dict(os.environ) == before


def test_a_right_document_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(RIGHT, tmp_path, monkeypatch) == 5


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("['ada']\n", "['bob']\n"),
        ('assert names == ["ada"]', 'assert names == ["bob"]'),
        ("\nHere.\n", "\nThere.\n"),
        ("$ echo $?\n1\n", ""),
        ("$ echo $?\n1\n", "$ echo $?\n0\n"),
        ("```toml", "```yaml"),
    ],
)
def test_a_wrong_one_does_not(right: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert right in RIGHT
    with pytest.raises(AssertionError):
        run(RIGHT.replace(right, wrong), tmp_path, monkeypatch)


def test_what_a_wrong_document_exported_is_gone_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JACKSTAY_HOME", raising=False)
    text = "```console\n$ export JACKSTAY_HOME=ci-home\n$ jackstay --version\nnever said\n```\n"
    with pytest.raises(AssertionError):
        run(text, tmp_path, monkeypatch)
    assert "JACKSTAY_HOME" not in os.environ


@pytest.mark.parametrize(("right", "wrong"), [("max_turns", "max_turtles"), ("= 3", "= three")])
def test_settings_that_do_not_load_are_noticed(
    right: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jackstay import ConfigError

    with pytest.raises(ConfigError):
        run(RIGHT.replace(right, wrong), tmp_path, monkeypatch)
