"""`jackstay policy`: what would be decided about a call and why, and do the rules mean what they say?"""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from jackstay.cli.plain import safe, shown
from jackstay.cli.switches import home_option, json_option

CODES = {"allow": 0, "ask": 3, "deny": 6}
_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}
_ARGUMENT = {
    "bash": "command", "webfetch": "url", "ls": "path", "grep": "path", "glob": "path",
    "read": "file_path", "write": "file_path", "edit": "file_path", "task": "agent_name",
}  # fmt: skip


@click.group()
def policy() -> None:
    """Explain and test what calls are allowed.

    \b
    Examples:
      jackstay policy check -- 'git -c core.pager=x log'
      jackstay policy test .jackstay/config.toml
    """


@policy.command(
    context_settings={"ignore_unknown_options": True}, short_help="What would be decided about a call, and why."
)
@click.option("--tool", default="bash", metavar="NAME", help="The tool that CMD is for (default: bash).")
@click.option("--allow", multiple=True, metavar="RULE", help="As if this rule were given: bash(git push *).")
@click.option("--deny", multiple=True, metavar="RULE", help="As if this rule were given.")
@click.option(
    "--rules", multiple=True, metavar="FILE", type=click.Path(), help="Read the rules of this file too."
)
@click.option(
    "--hitl/--no-hitl", default=None, help="Can somebody be asked? (default: as configured, else yes)"
)
@click.option(
    "--default", "fallback", type=click.Choice(["workspace", "seed"]),
    help="What holds where no rule speaks (default: as configured, else workspace).",
)  # fmt: skip
@click.option(
    "--workspace", default=".", metavar="DIR", type=click.Path(exists=True, file_okay=False),
    help="Where it would run.",
)  # fmt: skip
@home_option
@json_option
@click.argument("cmd", metavar="CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def check(ctx: click.Context, /, cmd: tuple[str, ...], **given: Any) -> None:
    """Say what would be decided about CMD and why: verdict, rule, reason, and what would change it; what the
    command consists of, what it would do, and whether it is shown to change nothing (read-only).

    CMD is a command for the shell (one word: its whole text), or the path or address that --tool would get.

    \b
    Examples:
      jackstay policy check -- git push origin main
      jackstay policy check --tool write -- ../notes.md
      jackstay policy check --deny 'bash(git push *)' -- 'git push --force'

    Exits 0 when it would be allowed, 3 when a person would be asked, 6 when it would be denied.
    """
    from jackstay.core.messages import ToolCall
    from jackstay.policy.explain import explain
    from jackstay.policy.secrets import redact
    from jackstay.policy.subject import tool_key
    from jackstay.ward.roots import rooted

    tool, text = given["tool"], cmd[0] if len(cmd) == 1 else shlex.join(cmd)
    call = ToolCall("check", tool, {_ARGUMENT.get(tool_key(tool), "text"): text})
    config = _config(given)
    hitl = config.hitl if given["hitl"] is None else given["hitl"]
    default = given["fallback"] or config.permission_default
    rules = rooted(config.rules, str(Path(given["workspace"]).resolve()), str(Path.home()))
    explained = _redacted(explain(rules, call, _facts(call, given), default=default, hitl=hitl))
    if given["as_json"]:
        _print_json({"type": "policy_check", "tool": tool, "call": redact(text)}, explained)
    else:
        _print(f"{tool}: {shown(redact(text))}", explained)
    ctx.exit(CODES[explained.verdict])


def _config(given: dict[str, Any]) -> Any:
    """The settings that hold for a run, with the rules of the command line; warnings go to stderr."""
    from jackstay.config.load import load
    from jackstay.config.model import Config
    from jackstay.config.paths import home
    from jackstay.config.rules import load_rules
    from jackstay.policy.permissions import parse_rule

    base = Config(hitl=True, permission_default="workspace")
    loaded = load(home(given["home"]), Path(given["workspace"]).resolve(), base=base)
    more = [load_rules(Path(path)) for path in given["rules"]]
    for warning in (*loaded.warnings, *(text for one in more for text in one.warnings)):
        click.echo(f"jackstay: {safe(warning)}", err=True)
    rules = [rule for one in more for rule in one.rules]
    rules += [parse_rule(text, "allow") for text in given["allow"]]
    rules += [parse_rule(text, "deny") for text in given["deny"]]
    return loaded.config.under(Config(rules=tuple(rules)))


def _facts(call: Any, given: dict[str, Any]) -> Any:
    """The facts about the call, for the tool of that name or one that could do anything."""
    from jackstay.config.paths import home
    from jackstay.core.tools import ALL_EFFECTS, READS, ToolSpec
    from jackstay.policy.subject import tool_key
    from jackstay.ward.probe import facts_of

    key = tool_key(call.tool)
    argument = _ARGUMENT.get(key, "text")
    spec = ToolSpec(
        call.tool, "", {}, READS if key in ("read", "ls", "grep", "glob", "task") else ALL_EFFECTS,
        path_args=(argument,) if argument in ("file_path", "path") else (),
        url_args=("url",) if argument == "url" else (),
        command_arg="command" if argument == "command" else None,
    )  # fmt: skip
    workspace = str(Path(given["workspace"]).resolve())
    return facts_of(call, spec, workspace, str(Path.home()), (str(home(given["home"])),))


def _redacted(explained: Any) -> Any:
    """Logs keep what is printed: secrets of the command are judged and not told."""
    from jackstay.core.wire import convert, decode_json, encode
    from jackstay.policy.masking import redact_value

    return convert(redact_value(decode_json(encode(explained))), type(explained))


def _print_json(head: dict[str, Any], explained: Any) -> None:
    from jackstay.core.wire import decode_json, encode

    click.echo(encode({**head, **decode_json(encode(explained))}))


def _print(call: str, explained: Any) -> None:
    from jackstay.cli.screen import Paint

    click.echo(f"{Paint(sys.stdout)(_COLOURS[explained.verdict], explained.verdict)}  {call}")
    click.echo(f"  reason   {explained.reason}")
    click.echo(f"  rule     {shown(explained.rule)}")
    for head, lines in (("facts", explained.facts), ("effects", explained.effects)):
        for number, line in enumerate(lines):
            click.echo(f"  {head if number == 0 else '':<8} {line}")
    if explained.read_only is not None:
        click.echo(f"  read-only: {'yes' if explained.read_only else 'no'}")
    if explained.unproven:
        click.echo(f"           {explained.unproven}")
    if explained.change:
        click.echo(f"  change   {shown(explained.change)}")


@policy.command(short_help="Hold rules against their own examples.")
@home_option
@json_option
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@click.pass_context
def test(ctx: click.Context, files: tuple[str, ...], home: str | None, as_json: bool) -> None:
    """Hold the rules of FILE (default: your own and the project's) against their own examples.

    \b
    Examples:
      jackstay policy test
      jackstay policy test .jackstay/config.toml --json

    Exits 0 when all hold, 1 when one fails, 2 when a file cannot be read as rules.
    """
    from jackstay.config.load import FILE
    from jackstay.config.paths import home as home_path
    from jackstay.config.trusted import PROJECT_DIR

    own = (home_path(home) / FILE, Path(PROJECT_DIR) / FILE)
    places = [Path(name) for name in files] or [path for path in own if path.is_file()]
    if not places and not as_json:
        click.echo(f"no rules: there is neither {own[0]} nor {own[1]}")
    held = [_examine(path, as_json=as_json) for path in places]
    ctx.exit(0 if all(held) else 1)


def _examine(path: Path, *, as_json: bool) -> bool:
    from jackstay.config.rules import load_rules
    from jackstay.core.wire import encode
    from jackstay.policy.examples import failures

    loaded = load_rules(path, check=False)
    failed = [f"{rule.origin}: {failure}" for rule in loaded.rules for failure in failures(rule)]
    count = sum(len(rule.match) + len(rule.not_match) for rule in loaded.rules)
    if as_json:
        told = {"type": "policy_test", "file": str(path), "rules": len(loaded.rules), "examples": count}
        click.echo(encode({**told, "failures": failed, "warnings": list(loaded.warnings)}))
        return not failed
    for text in failed:
        click.echo(safe(text))
    for warning in loaded.warnings:
        click.echo(f"jackstay: {safe(warning)}", err=True)
    click.echo(f"{path}: {len(loaded.rules)} rules, {count - len(failed)} of {count} examples hold")
    return not failed
