"""Hermes entry point `context-anchor`: mission, task, host and key facts, kept before the model."""

from typing import Any


def register(ctx: Any) -> None:
    """What Hermes calls once, at its start. The anchor refuses nothing, so a failure is Hermes's to report."""
    from jackstay.hosts import hermes

    hermes.anchor(ctx)
