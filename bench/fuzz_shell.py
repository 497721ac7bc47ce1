"""Does any input make the analyser raise, or take longer than it may?

Run: `python bench/fuzz_shell.py [--count 1000000] [--seed 1]`. Inputs are random bytes, mutated corpus
lines, joined lines,
deep nesting and very long texts. Prints the slowest inputs; ends with status 1 when a bound is broken.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import tomllib
from pathlib import Path

from jackstay.policy.shell import syntax, verdict

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus" / "shell.toml"
SHORT_S = 2.0  # for a text of up to 10,000 characters: the grammar needs most of it on deeply broken arrays
LONG_S = 0.2  # for a text that is too long to be read
OPENERS = ("(", "{ ", "$(", "`", "((", "$((", "${x:-", '"$(', "<(", "if ", "[[ ", "case x in ", "while ",
"[", "{", "!", "<<E ", "a=(")  # fmt: skip
PIECES = ("$(", ")", "`", '"', "'", "\\", "\n", ";", "&", "|", ">", "<", "<<E\n", "E\n", "${", "}", "((",
"))", "[[", "]]", "#", "{a,b}",
          "$'\\x", "if", "then", "fi", "do", "done", "case", "esac", "\x00", "\r", "\u200b", "\ud800",
          "\u202e", "*", "=", " ", "\t", "rm x")  # fmt: skip


def seeds() -> list[str]:
    """Every command of the corpus."""
    found: list[str] = []
    for case in tomllib.loads(CORPUS.read_text("utf-8"))["case"]:
        found += [line for line in case.get("lines", "").split("\n") if line.strip()]
        found += case.get("blocks", [])
    return found


def mutate(text: str, chance: random.Random) -> str:
    """A corpus line with a few things deleted, doubled or put in."""
    letters = list(text)
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(letters))
        match chance.randint(0, 4):
            case 0:
                letters.insert(at, chance.choice(PIECES))
            case 1:
                del letters[at : at + chance.randint(1, 4)]
            case 2:
                letters[at:at] = letters[at : at + chance.randint(1, 20)]
            case 3:
                letters.insert(
                    at, chr(chance.choice((chance.randint(0, 127), chance.randint(128, 0x2FFF), 0xDC80)))
                )
            case _:
                letters.insert(at, chance.choice(OPENERS) * chance.randint(1, 30))
    return "".join(letters)


def text(chance: random.Random, lines: list[str]) -> str:
    """One input of a random kind."""
    kind = chance.randint(0, 999)
    if kind < 250:
        return chance.randbytes(chance.randint(0, 200)).decode("latin-1")
    if kind < 300:
        return chance.randbytes(chance.randint(0, 200)).decode("utf-8", "surrogateescape")
    if kind < 700:
        return mutate(chance.choice(lines), chance)
    if kind < 850:
        return "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 60)))
    if kind < 995:
        return chance.choice(("; ", "\n", " | ", " && ", " ")).join(
            chance.choices(lines, k=chance.randint(2, 5))
        )
    if kind < 998:
        return chance.choice(OPENERS) * chance.randint(100, 5000) + chance.choice(lines)
    if kind == 998:
        return (chance.choice(lines) + chance.choice(("; ", "\n", " | "))) * chance.randint(10, 100)
    return chance.choice(OPENERS + PIECES) * chance.choice((10_000, 1_000_000))


def campaign(count: int, seed: int, *, longest_s: float = 1e9) -> tuple[int, list[tuple[float, str]]]:
    """Judge `count` inputs (or until the time is up); the number done and the slowest ones."""
    chance = random.Random(seed)
    lines = seeds()
    slow: list[tuple[float, str]] = []
    end = time.perf_counter() + longest_s
    for done in range(count):
        one = text(chance, lines)
        start = time.perf_counter()
        verdict.judge_facts(syntax.parse(one))  # not analyse_command: it would turn a fault into a refusal
        taken = time.perf_counter() - start
        if taken > (SHORT_S if len(one) <= 10_000 else LONG_S) or len(slow) < 5 or taken > slow[-1][0]:
            slow = sorted([*slow, (taken, one)], reverse=True)[:10]
        if start > end:
            return done + 1, slow
    return count, slow


def main() -> int:
    """Run the campaign and print what was slow."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=1_000_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    start = time.perf_counter()
    done, slow = campaign(given.count, given.seed)
    print(f"{done} inputs in {time.perf_counter() - start:.0f} s, no exception")
    for taken, one in slow:
        print(f"  {taken * 1000:8.1f} ms  {len(one):8d} characters  {one[:60]!r}")
    return int(any(taken > (SHORT_S if len(one) <= 10_000 else LONG_S) for taken, one in slow))


if __name__ == "__main__":
    sys.exit(main())
