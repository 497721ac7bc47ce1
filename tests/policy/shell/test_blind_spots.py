"""What parsers are known not to see, one row each: here it is either seen or said to be unreadable."""

from __future__ import annotations

import pytest

from jackstay.policy.shell import analyse_command

# name: (texts that do more than read, and what is to be seen in them: a program, `>file`, or "" for a doubt)
SILENT = {
    "backquotes in a here-document": ["cat <<E\n`rm x`\nE", "cat <<E\na `rm x` b\nE"],
    "a substitution after a tab in a <<- body": ["cat <<-E\n\t$(rm x)\n\tE", "cat <<-E\n\ta $(rm x)\nE"],
    "a substitution in a plain here-document": ["cat <<E\n$(rm x)\nE", "cat <<E\na\n$(ls; rm x)\nE"],
    "backquotes inside a parameter expansion": ["echo ${x:=`rm y`}", 'echo "${x:-`rm y`}"', "echo ${x:+`rm y`}"],
    "substitutions inside a parameter expansion": [
        "echo ${x:=$(rm y)}", "echo ${x/$(rm y)/z}", "echo ${x/a/$(rm y)}", "echo ${a[$(rm y)]}", "echo ${x:$(rm y)}",
    ],
    "a comparison that redirects": ["[ a > b ]", "[ 1 > 2 ]", "test a > b", "[ a -a b > c ]"],
    "names that builtins evaluate": [
        "test -v 'a[$(x)]'", "[ -v 'a[$(x)]' ]", "[[ -v 'a[$(x)]' ]]", "[[ 'a[$(x)]' -eq 1 ]]", "[[ 1 -lt 'a[$(x)]' ]]",
        "declare 'a[$(x)]=1'", "let 'a[$(x)]'", "printf -v 'a[$(x)]' y", "read 'a[$(x)]'", "unset 'a[$(x)]'",
        "echo ${x@P}", "echo ${!x}", "declare -n x='a[$(x)]'", "local 'a[$(x)]=1'", "export 'a[$(x)]=1'",
        "mapfile 'a[$(x)]'", "wait -p 'a[$(x)]' 1", "(( 'a[$(x)]' ))", "declare -i x='a[$(x)]'",
    ],
    "a comment that ends before the substitution": ["$(ls # )\nrm x)", "echo $(ls # )\nrm x\n)"],
    "time, coproc and named descriptors": [
        "time rm x", "time { rm x; }", "coproc rm x", "coproc N { rm x; }", "ls {fd}> f", "exec {fd}> f", "! time rm x",
    ],
    "a byte order mark": ["\ufeffls", "\ufeffls; rm x"],
    "a carriage return": ["ls\rrm x", "ls -l\r\nrm x", "ls\r"],
    "a line joined by a backslash": ["r\\\nm x", "r\\\n\\\nm x", "ls; r\\\nm x"],
    "an ANSI-C string": ["$'\\x72m' x", "$'\\162m' x", "$'\\u0072m' x", "r$'m' x", "$'r'm x"],
    "a brace expansion as a command": ["{rm,x}", "{rm,-r,x}"],
    "opening for reading and writing": ["cat <> f", "exec 3<> f", "ls 1<> f"],
    "two here-documents on a line": ["cat <<A <<B\na\nA\n$(rm x)\nB", "cat <<A; rm <<B\na\nA\nx\nB"],
    "brackets and patterns in conditions": ["[ \\( a \\) ] > f", "ls !(a) > f", "[[ a == $(rm x) ]]", "[[ a =~ $(rm x) ]]"],
    "a partly quoted delimiter": ["cat <<E'O'F\n$(rm x)\nEOF\nrm y", 'cat <<"E"F\na\nEF\nrm y', "cat <<\\E\na\nE\nrm y"],
    "forms that another parser cannot read": [
        "echo $((1 + $(rm x)))", "case x in x) rm y;; esac", "select x in a; do rm x; done", "[[ -n $(rm x) ]]",
        "for ((i=0; i<$(rm x); i++)); do ls; done", "a=($(rm x))", "cat <<'E'\na\nE\nrm x",
    ],
}  # fmt: skip
CLASSES = {
    "only the first command is checked": ["ls; rm x", "ls && rm x", "ls | rm x", "ls & rm x", "ls\nrm x", "ls || rm x"],
    "redirections": ["ls > f", "ls >> f", "ls >| f", "ls 2> f", "ls &> f", "ls >& f", "> f", "f=1 > f", "(ls) > f"],
    "an option or operand makes a reader write": [
        "sort -o f a", "sed -n 'w f' a", "find . -fprint f", "uniq a f", "xxd a f", "git diff --output=f", "tree -o f",
        "date -s x", "sed -i p f", "awk -i inplace 1 f", "grep -r x . -O", "tar -cf a b", "hostname x", "file -C",
    ],
    "substitutions": ["ls $(rm x)", "ls `rm x`", "ls <(rm x)", "ls > >(cat)", "ls \"$(rm x)\"", "cat <<< $(rm x)"],
    "assignments and environment": ["PATH=. ls", "LD_PRELOAD=x ls", "GIT_PAGER=x git log", "IFS=x; ls", "env PATH=. ls"],
    "wrappers": ["env rm x", "ls | xargs rm", "timeout 5 rm x", "bash -c 'rm x'", "nohup rm x", "nice rm x", "command rm x"],
    "spelling": ["r''m x", "\\rm x", "'rm' x", "$'rm' x", "{rm,x}", "rm${IFS}x", "ls\u00a0x", "r\"m\" x"],
    "paths, functions and aliases": ["./ls", "/tmp/ls", "ls() { rm x; }; ls", "alias ls=rm", "hash -p /tmp/x ls", "~/ls"],
    "limits fail closed": ["ls " + "a" * 10_000, ";".join(["ls"] * 500), "$(" * 300 + "ls" + ")" * 300],
}  # fmt: skip


@pytest.mark.parametrize("row", SILENT)
def test_a_blind_spot_is_closed(row: str) -> None:
    assert [text for text in SILENT[row] if analyse_command(text).read_only] == []


@pytest.mark.parametrize("row", CLASSES)
def test_a_class_of_failures_is_closed(row: str) -> None:
    assert [text for text in CLASSES[row] if analyse_command(text).read_only] == []


@pytest.mark.parametrize("text", [text for texts in SILENT.values() for text in texts])
def test_what_would_run_is_seen_or_said_to_be_unreadable(text: str) -> None:
    verdict = analyse_command(text)
    words = {word for part in verdict.commands for word in part.argv}
    seen = "rm" not in text or "rm" in words
    assert verdict.opaque or verdict.facts.opaque or (seen and not verdict.read_only)
