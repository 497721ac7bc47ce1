"""read, write, edit and ls on real files."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jackstay.core.errors import ToolFailed
from jackstay.tools import files
from jackstay.tools.edits import amend
from jackstay.tools.files import edit, ls, read, write
from jackstay.tools.texts import decode, head_and_tail

# -- read ------------------------------------------------------------------------------------------------------


def test_read_numbers_the_lines_and_names_range_and_next_offset(box: Any) -> None:
    box.file("a.txt", "".join(f"line {n}\n" for n in range(1, 11)))
    assert box.run(read, file_path="a.txt", offset=3, limit=2).text == (
        "a.txt: lines 3-4 of 10 (71 bytes, utf-8)\n"
        "     3 | line 3\n"
        "     4 | line 4\n"
        "(6 more lines: read on with offset=5)"
    )
    assert box.run(read, file_path="./a.txt", offset=10).text == (
        "a.txt: lines 10-10 of 10 (71 bytes, utf-8)\n    10 | line 10\n(end of file)"
    )


def test_read_says_what_is_special_about_a_file(box: Any) -> None:
    box.file("empty", "")
    box.file("open-end", "a\nb")
    assert box.run(read, file_path="empty").text == "empty is empty (0 lines)"
    assert box.run(read, file_path="open-end").text == (
        "open-end: lines 1-2 of 2 (3 bytes, utf-8)\n"
        "     1 | a\n     2 | b\n(end of file, no newline at its end)"
    )
    box.file("crlf", "a\r\nb\r\n")
    assert "(6 bytes, utf-8, CRLF line ends)" in box.run(read, file_path="crlf").text
    assert box.fails(read, file_path="crlf", offset=3) == "crlf has 2 lines: offset 3 is beyond its end"


@pytest.mark.parametrize(
    ("data", "label"),
    [
        ("caf\u00e9 \u4f60\u597d".encode(), "utf-8"),
        ("\ufeffcaf\u00e9".encode(), "utf-8 with BOM"),
        ("\ufeffcaf\u00e9 \u4f60".encode("utf-16-le"), "utf-16-le with BOM"),
        ("\ufeffcaf\u00e9 \u4f60".encode("utf-16-be"), "utf-16-be with BOM"),
        ("caf\u00e9 ol\u00e9, \u00e9t\u00e9".encode("latin-1"), "latin-1 (guessed)"),
        ("\u4f60\u597d\uff0c\u4e16\u754c\uff1aGBK \u6587\u4ef6".encode("gb18030"), "gb18030 (guessed)"),
    ],
)
def test_encodings_are_found_said_and_kept_by_edit_and_write(box: Any, data: bytes, label: str) -> None:
    path = box.file("t.txt", data + "\n".encode(label.split()[0]))
    known = decode(path.read_bytes())
    assert known is not None
    assert label in box.run(read, file_path="t.txt").text
    word = known.text.strip()
    assert f"     1 | {word}" in box.run(read, file_path="t.txt").text
    box.run(edit, file_path="t.txt", old_string=word, new_string=word + " x")
    assert path.read_bytes() == known.encode(f"{word} x\n")
    box.run(write, file_path="t.txt", content=f"{word} y\n")
    assert path.read_bytes() == known.encode(f"{word} y\n")


def test_what_an_encoding_cannot_hold_is_said(box: Any) -> None:
    path = box.file("l.txt", "\u00e9t\u00e9\n".encode("latin-1"))
    assert box.fails(edit, file_path="l.txt", old_string="t", new_string="\u4f60") == (
        "l.txt is latin-1 (guessed) and cannot hold '\u4f60': "
        "write the whole file anew to have it in UTF-8, or leave that character out"
    )
    output = box.run(write, file_path="l.txt", content="\u4f60\n")
    assert output.text == "replaced l.txt (1 line, 4 bytes, now UTF-8: latin-1 cannot hold all of it)"
    assert path.read_text(encoding="utf-8") == "\u4f60\n"


def test_binary_is_refused_with_a_summary(box: Any) -> None:
    box.file("x.png", b"\x89PNG\r\n\x1a\n" + bytes(3000))
    assert box.fails(read, file_path="x.png") == (
        "x.png is binary (PNG image, 3.0 kB) and not shown: use bash to inspect it"
    )
    assert "cannot be edited as text" in box.fails(edit, file_path="x.png", old_string="a", new_string="b")


def test_very_long_lines_and_pages_are_clipped_and_said_so(box: Any) -> None:
    box.file("min.js", "x" * 5000 + "\n")
    text = box.run(read, file_path="min.js").text
    assert "x [… line clipped: 3,000 of its 5,000 characters not shown]\n(end of file)" in text
    box.file("wide.txt", ("y" * 1900 + "\n") * 100)
    text = box.run(read, file_path="wide.txt").text
    assert len(text) < files.MAX_CHARS + 500
    assert text.startswith("wide.txt: lines 1-52 of 100")
    assert text.endswith("(48 more lines: read on with offset=53)")


def test_a_file_too_large_to_read_is_refused_without_reading_it(box: Any) -> None:
    path = box.file("huge.log")
    os.truncate(path, files.MAX_FILE + 1)
    assert box.fails(read, file_path="huge.log") == (
        "huge.log has 67.1 MB, more than the 67.1 MB that are read at once: "
        "use grep, or bash with sed -n or head"
    )
    assert box.run(write, file_path="huge.log", content="x").text == "wrote huge.log (1 line, 1 byte)"


def test_missing_files_and_directories_are_named_with_the_nearest_names(box: Any) -> None:
    box.file("src/parser.py")
    assert box.fails(read, file_path="src/parsr.py") == "there is no file src/parsr.py; near it: parser.py"
    assert box.fails(read, file_path="scr/parser.py") == "there is no directory scr; near it: src"
    assert box.fails(read, file_path="src/zzz") == (
        "there is no file src/zzz: use ls or glob to see what src holds"
    )
    assert box.fails(read, file_path="src") == "src is a directory: use ls to see what it holds"
    assert box.fails(read, file_path=".") == "the workspace itself is a directory: use ls to see what it holds"
    assert box.fails(read, file_path="src/parser.py/x") == "src/parser.py is a file, not a directory"
    assert box.fails(read, file_path="a\0b") == "the path contains a NUL character: give a plain path"
    assert "File name too long" in box.fails(read, file_path="n" * 300)


# -- write -----------------------------------------------------------------------------------------------------


def test_write_makes_directories_replaces_whole_files_and_leaves_nothing_behind(box: Any) -> None:
    assert box.run(write, file_path="a/b/c.txt", content="one\n").text == "wrote a/b/c.txt (1 line, 4 bytes)"
    assert (
        box.run(write, file_path="a/b/c.txt", content="one\ntwo").text
        == "replaced a/b/c.txt (2 lines, 7 bytes)"
    )
    assert (box.root / "a/b/c.txt").read_text() == "one\ntwo"
    assert [p.name for p in (box.root / "a/b").iterdir()] == ["c.txt"]


def test_write_keeps_mode_and_line_ends(box: Any) -> None:
    path = box.file("run.sh", "echo\r\necho\r\n")
    path.chmod(0o750)
    text = box.run(write, file_path="run.sh", content="a\nb\n").text
    assert text == "replaced run.sh (2 lines, 6 bytes, CRLF line ends kept)"
    assert path.read_bytes() == b"a\r\nb\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


def test_a_new_file_gets_the_usual_mode(box: Any) -> None:
    old = os.umask(0o027)
    try:
        box.run(write, file_path="n.txt", content="")
    finally:
        os.umask(old)
    assert stat.S_IMODE((box.root / "n.txt").stat().st_mode) == 0o640


def test_a_hard_link_elsewhere_keeps_its_content(box: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("precious\n")
    (box.root / "inside.txt").hardlink_to(outside)
    box.run(write, file_path="inside.txt", content="changed\n")
    box.run(edit, file_path="inside.txt", old_string="changed", new_string="edited")
    assert (outside.read_text(), (box.root / "inside.txt").read_text()) == ("precious\n", "edited\n")


def test_a_file_that_changed_since_it_was_read_is_not_written_over(box: Any) -> None:
    path = box.file("a.txt", "one\n")
    box.run(read, file_path="a.txt")
    path.write_text("somebody else\n")
    refusal = (
        "a.txt has changed since you last read or wrote it: nothing was done; "
        "read it again and repeat the change on what it holds now"
    )
    assert box.fails(write, file_path="a.txt", content="two\n") == refusal
    assert box.fails(edit, file_path="a.txt", old_string="somebody", new_string="x") == refusal
    assert path.read_text() == "somebody else\n"
    box.run(read, file_path="a.txt")
    box.run(edit, file_path="a.txt", old_string="somebody", new_string="nobody")
    box.run(write, file_path="a.txt", content="two\n")
    assert path.read_text() == "two\n"


def test_a_write_that_is_repeated_after_a_crash_changes_nothing_more(box: Any) -> None:
    box.file("a.txt", "one\n")
    box.run(read, file_path="a.txt")
    before = dict(box.seen)
    box.run(write, file_path="a.txt", content="two\n")
    box.seen = before  # what the session knew before the crash
    output = box.run(write, file_path="a.txt", content="two\n")
    assert not output.is_error
    assert output.text == "already as wanted: a.txt (1 line, 4 bytes)"


def test_writing_a_file_that_was_never_read_is_allowed(box: Any) -> None:
    box.file("a.txt", "one\n")
    box.run(write, file_path="a.txt", content="two\n")
    box.file("b.txt", "one\n")
    box.run(edit, file_path="b.txt", old_string="one", new_string="two")
    assert ((box.root / "a.txt").read_text(), (box.root / "b.txt").read_text()) == ("two\n", "two\n")


def test_a_file_deleted_since_it_was_read_can_be_written_again(box: Any) -> None:
    path = box.file("a.txt", "one\n")
    box.run(read, file_path="a.txt")
    path.unlink()
    assert box.run(write, file_path="a.txt", content="x").text == "wrote a.txt (1 line, 1 byte)"


def test_a_write_that_fails_leaves_the_old_file(box: Any) -> None:
    box.file("dir/x", "")
    assert box.fails(write, file_path="dir", content="x") == "dir is a directory: use ls to see what it holds"
    assert "half a character" in box.fails(write, file_path="dir/x", content="\ud800")
    assert (box.root / "dir/x").read_bytes() == b""
    assert [p.name for p in (box.root / "dir").iterdir()] == ["x"]


# -- edit ------------------------------------------------------------------------------------------------------


def test_edit_shows_what_it_made(box: Any) -> None:
    box.file("a.py", "def f():\n    return 1\n")
    assert box.run(edit, file_path="a.py", old_string="return 1", new_string="x = 2\n    return x").text == (
        "edited a.py: 1 replacement. It now reads:\n     2 |     x = 2\n     3 |     return x"
    )


def test_edit_replaces_all_when_told(box: Any) -> None:
    path = box.file("a.py", "a\nb\na\n")
    assert box.fails(edit, file_path="a.py", old_string="a", new_string="c") == (
        "old_string stands in the file 2 times, at lines 1, 3: "
        "add lines around it until it is unique, or set replace_all"
    )
    text = box.run(edit, file_path="a.py", old_string="a", new_string="c", replace_all=True).text
    assert text == "edited a.py: 2 replacements, at lines 1, 3"
    assert path.read_text() == "c\nb\nc\n"


def test_edit_keeps_line_ends_and_the_missing_last_newline(box: Any) -> None:
    path = box.file("a.txt", b"one\r\ntwo\r\nthree")
    box.run(edit, file_path="a.txt", old_string="one\ntwo", new_string="1\n2\n2b")
    assert path.read_bytes() == b"1\r\n2\r\n2b\r\nthree"
    box.run(edit, file_path="a.txt", old_string="2b\r\nthree", new_string="3")
    assert path.read_bytes() == b"1\r\n2\r\n3"
    mixed = box.file("mixed.txt", b"a\r\nb\nc\r\nd\n")
    box.run(edit, file_path="mixed.txt", old_string="b\nc", new_string="B\nC")
    assert mixed.read_bytes() == b"a\r\nB\nC\r\nd\n"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("", "x", "old_string is empty: give the text to replace, or use write for a whole file"),
        ("x", "x", "old_string and new_string are the same: nothing to change"),
        ("     2 |     return 1", "x", "it seems to hold the line numbers that read shows; leave them out"),
        ("def f():\n\treturn 1", "x", "lines 1-2 differ from it only in white space:\ndef f():\n    return 1"),
        (
            "def f():\n    return 2",
            "x",
            "it begins like line 1 of the file and first differs at line 2: "
            "there stands '    return 1', old_string has '    return 2'",
        ),
        (
            "retrun 1",
            "x",
            "the lines nearest to its first one are:\n     2 |     return 1\nread the file again",
        ),
        ("qqqqqqqq", "x", "no line is like its first one, 'qqqqqqqq': read the file again"),
        ("old name", "return 1", "(new_string is in the file already: was this edit made before?)"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why_and_what_is_near(
    box: Any, old: str, new: str, problem: str
) -> None:
    path = box.file("a.py", "def f():\n    return 1\n")
    assert problem in box.fails(edit, file_path="a.py", old_string=old, new_string=new)
    assert path.read_text() == "def f():\n    return 1\n"


@given(
    st.text("ab\n", min_size=1, max_size=30),
    st.text("ab\n", min_size=1, max_size=4),
    st.text("xy\n", max_size=4),
)
def test_amend_is_a_plain_replacement_with_the_line_ends_of_the_file(text: str, old: str, new: str) -> None:
    assume(old != new)
    windows = text.replace("\n", "\r\n")
    if old not in text:
        with pytest.raises(ToolFailed):
            amend(text, old, new)
        return
    assert amend(text, old, new, replace_all=True)[0] == text.replace(old, new)
    if "\n" in text:
        assert amend(windows, old, new, replace_all=True)[0] == text.replace(old, new).replace("\n", "\r\n")


@given(st.text(max_size=200), st.integers(3, 100))
def test_head_and_tail_keep_both_ends_and_count_the_rest(text: str, limit: int) -> None:
    shown, cut = head_and_tail(text, limit)
    if not cut:
        assert shown == text
        return
    head, tail = limit * 2 // 3, limit - limit * 2 // 3
    assert shown.startswith(text[:head])
    assert shown.endswith(text[-tail:])
    assert head + tail + cut == len(text)


# -- ls --------------------------------------------------------------------------------------------------------


def test_ls_shows_directories_first_links_with_their_targets_and_special_files(box: Any) -> None:
    box.file("b.txt", "x" * 1500)
    box.file("sub/c", "")
    (box.root / "a").symlink_to("b.txt")
    os.mkfifo(box.root / "pipe")
    assert box.run(ls).text == ".: 4 entries\nsub/\na -> b.txt\nb.txt  1.5 kB\npipe  (special file)"
    assert box.run(ls, path="sub").text == "sub: 1 entry\nc  0 bytes"
    (box.root / "void").mkdir()
    assert box.run(ls, path="void").text == "void is empty"
    assert box.fails(ls, path="b.txt") == "b.txt is a file, not a directory"


def test_ls_of_very_many_entries_says_how_many_are_not_shown(box: Any) -> None:
    for number in range(520):
        (box.root / f"f{number:03}").touch()
    text = box.run(ls).text
    assert text.startswith(".: 520 entries\nf000  0 bytes\n")
    assert text.endswith("f499  0 bytes\n(20 more entries not shown: use glob to narrow them)")
