"""Hermes entry point `work-principles`: the discipline."""

from typing import Any


def register(ctx: Any) -> None:
    """What Hermes calls once, at its start. Never raises: Hermes would go on without the discipline."""
    try:
        from jackstay.hosts import hermes

        hermes.discipline(ctx)
    except BaseException as problem:  # Hermes runs on unguarded when this function raises
        refuse_all(ctx, problem)


def refuse_all(ctx: Any, problem: BaseException) -> None:
    """Refuse every call: what should judge them could not be started."""
    why = f"jackstay could not be started ({type(problem).__name__}: {problem}), so no tool call may run."
    text = f"{why} Mend it, or take it out: `hermes plugins disable work-principles`, then start Hermes anew."
    ctx.register_hook("pre_tool_call", lambda **_: {"action": "block", "message": text})
