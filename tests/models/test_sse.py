"""The events of a stream are those of the standard, however it is cut."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from jackstay.models.sse import Sse, SseParser

TEXT = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
LINE_END = st.sampled_from(["\n", "\r\n", "\r"])
LINE = st.one_of(
    st.builds("data: {}".format, TEXT),
    st.builds("data:{}".format, TEXT),
    st.builds("event: {}".format, TEXT),
    st.builds(": {}".format, TEXT),
    st.builds("id: {}".format, TEXT),
    st.sampled_from(["data", "retry: 3", "nonsense", "", ""]),
)


def by_the_book(text: str) -> list[Sse]:
    """The standard's own algorithm, line by line; what has no blank line behind it counts as an event too."""
    found: list[Sse] = []
    name, data = "", []
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for line in [*lines, ""]:
        if line == "":
            if data:
                found.append((name, "\n".join(data).encode()))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return found


def parse(*chunks: bytes) -> list[Sse]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.finish()


@given(st.lists(st.tuples(LINE, LINE_END), max_size=12), st.data())
def test_any_chunking_gives_the_events_of_the_standard(lines, data):
    text = "".join(line + end for line, end in lines)
    stream = text.encode()
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    bounds = [0, *cuts, len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(bounds)]
    expected = by_the_book(text)
    assert parse(*chunks) == expected
    for size in (1, 2, 3):
        assert parse(*(stream[i : i + size] for i in range(0, len(stream), size))) == expected


def test_an_event_is_there_as_soon_as_its_blank_line_is():
    parser = SseParser()
    assert parser.feed(b"data: one\n") == []
    assert parser.feed(b"\ndata: two\n\nda") == [("", b"one"), ("", b"two")]
    assert parser.feed(b"ta: three\r\n\r\n") == [("", b"three")]
    assert [parser.feed(piece) for piece in (b"data: four\n", b"\n")] == [[], [("", b"four")]]
    assert [parser.feed(piece) for piece in (b"data: five\r", b"\n\r", b"\n")] == [[], [], [("", b"five")]]


def test_characters_split_at_every_byte_come_out_whole():
    stream = 'data: {"a": "é你🙂"}\n\n'.encode()
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == [("", '{"a": "é你🙂"}'.encode())]


def test_names_several_data_lines_comments_and_a_byte_order_mark():
    stream = b"\xef\xbb\xbfevent: delta\n: keep-alive\ndata: a\ndata:b\nid: 7\n\n: nothing\n\ndata: last"
    assert parse(stream) == [("delta", b"a\nb"), ("", b"last")]


def test_a_large_event_in_small_chunks_costs_no_more_than_its_size():
    big = b"data: " + b"x" * 3_000_000 + b"\n\n"
    assert [len(data) for _, data in parse(*(big[i : i + 1000] for i in range(0, len(big), 1000)))] == [
        3_000_000
    ]
