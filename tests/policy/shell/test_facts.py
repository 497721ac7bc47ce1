"""What is read from a text: commands, words, redirections, substitutions, comments, doubts."""

from __future__ import annotations

from jackstay.policy.shell import parse


def words(text: str) -> list[list[str]]:
    return [[word.text for word in one.words] for one in parse(text).commands if one.words]


def test_a_pipeline_is_its_commands_in_order():
    facts = parse("cat a.txt | grep -i x | wc -l")
    assert words("cat a.txt | grep -i x | wc -l") == [["cat", "a.txt"], ["grep", "-i", "x"], ["wc", "-l"]]
    assert [(one.piped_in, one.piped_out) for one in facts.commands] == [
        (False, True),
        (True, True),
        (True, False),
    ]


def test_quotes_are_removed_as_the_shell_removes_them():
    assert words(r"""echo 'a b'"c d" $'f\tg' "h\"i" j''k a\ b""") == [
        ["echo", "a bc d", "f\tg", 'h"i', "jk", "a b"]
    ]


def test_words_that_touch_where_the_grammar_parts_them_are_a_doubt():
    assert parse(r"""ls "a"\ b""").opaque
    assert parse(r"""ls \ "a" """).opaque


def test_a_spelling_does_not_hide_the_program():
    assert [one[0] for one in words("r''m x; \\rm x; 'rm' x; $'\\162m' x")] == ["rm", "rm", "rm", "rm"]


def test_words_with_expansions_are_not_fixed():
    facts = parse('grep "$x" a$y *.c {a,b} $(id)')
    assert facts.commands[0].argv == ("grep", None, None, None, "a", "b", None)


def test_redirections_keep_operator_and_target():
    facts = parse("cat <a >b 2>>c &>d <<<e")
    assert [(one.op, one.target.text, one.fd) for one in facts.redirects][:4] == [
        ("<", "a", ""), (">", "b", ""), (">>", "c", "2"), ("&>", "d", ""),
    ]  # fmt: skip


def test_a_word_behind_a_redirection_is_an_argument():
    assert words("ls >a b 2>c d") == [["ls", "b", "d"]]


def test_substitutions_are_listed_and_their_commands_belong_to_them():
    facts = parse('echo "$(date)" `id` <(ls)')
    assert [one.opener for one in facts.substitutions] == ["$(", "`", "<("]
    assert {one.words[0].text: one.inside for one in facts.commands} == {
        "echo": 0,
        "date": 1,
        "id": 2,
        "ls": 3,
    }


def test_comments_are_those_the_grammar_sees():
    facts = parse("ls # real\necho '# not' \"# not\" a#not\n#anchor:fact k=v\ncat <<E\n# not\nE")
    assert facts.comments == ("# real", "#anchor:fact k=v")


def test_what_follows_a_here_document_is_a_command():
    assert words("cat <<E\nx\nE\nrm y") == [["cat"], ["rm", "y"]]


def test_doubts_name_the_words():
    doubts = {
        text: parse(text).opaque for text in ("$X y", "ls `", "echo ${x@P}", "ls\u00a0x", "cat <<E\n`id`\nE")
    }
    assert all(doubts.values())
    assert doubts["$X y"][0].words == "$X"


def test_function_names_and_assignments_are_listed():
    facts = parse("f() { ls; }; A=1 B=(x y) f; export C=2")
    assert facts.functions == ("f",)
    assert [one.name for one in facts.assignments] == ["A", "B", "C"]
