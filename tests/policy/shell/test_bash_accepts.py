"""What the analyser takes for a reading command, bash takes for a command: `bash -n` parses and runs nothing.

A grammar that forgives what bash refuses would let the analyser judge a text that means something else.
"""

import random
import re
import subprocess
from pathlib import Path

from jackstay import analyse_command
from tests.policy.shell.corpus import corpus

_MARKS = [
    "if",
    "then",
    "fi",
    "else",
    "elif",
    "while",
    "do",
    "done",
    "for",
    "in",
    "case",
    "esac",
    "{",
    "}",
    "(",
    ")",
    ";",
    "&&",
    "||",
    "|",
    "&",
    ";;",
    "!",
    "[[",
    "]]",
    "[",
    "]",
    "((",
    "))",
    '"',
    "'",
    "`",
    "$(",
    "<",
    ">",
    "<<",
    "2>",
    "&>",
    "|&",
    "function",
    "select",
    "time",
    "\\",
    "#",
    "$",
    "${",
    "<<<",
    ">&",
    "<&",
    "coproc",
    "until",
    ";&",
]
_CHECK = 'for file in *; do bash -n "$file" 2>/dev/null || echo "$file"; done'


def refused(commands: list[str], folder: Path) -> list[str]:
    """Those of the commands that bash cannot parse."""
    for number, command in enumerate(commands):
        (folder / str(number)).write_text(command + "\n", encoding="utf-8")
    said = subprocess.run(
        ["bash", "-c", _CHECK], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    return [commands[int(number)] for number in said.stdout.split()]


def mutated(command: str, chance: random.Random) -> str:
    """The command with one or two tokens put in, taken out or exchanged."""
    tokens = re.findall(r"\s+|\w+|[^\w\s]", command)
    for _ in range(chance.randint(1, 2)):
        at = chance.randrange(len(tokens) + 1)
        match chance.randrange(3):
            case 0:
                tokens.insert(at, chance.choice((*_MARKS, "\n", "\t")) + chance.choice(("", " ")))
            case 1 if tokens:
                tokens.pop(min(at, len(tokens) - 1))
            case _ if len(tokens) > 1:
                one, other = chance.randrange(len(tokens)), min(at, len(tokens) - 1)
                tokens[one], tokens[other] = tokens[other], tokens[one]
            case _:
                pass
    return "".join(tokens)


def test_bash_parses_every_reading_command_of_the_corpus(tmp_path: Path) -> None:
    accepted = [line.command for line in corpus() if analyse_command(line.command).read_only]
    assert len(accepted) > 2_500
    assert refused(accepted, tmp_path) == []


def test_bash_parses_whatever_mutation_of_one_is_still_taken_for_reading(tmp_path: Path) -> None:
    chance = random.Random(20)
    reading = [line.command for line in corpus() if line.read_only]
    made = dict.fromkeys(mutated(chance.choice(reading), chance) for _ in range(10_000))
    accepted = [command for command in made if analyse_command(command).read_only]
    assert len(accepted) > 1_000
    assert refused(accepted, tmp_path) == []
