"""What is kept in front of the model for a whole session (second seed §16.1.3)."""

import msgspec


class Anchor(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Mission, current task, host, last tool and key facts; every text is one short, redacted line.

    `task_at` is when the task was last inferred (epoch seconds). `host` is the machine being worked on, `local`
    this one. `facts` are (key, value) pairs, the oldest first.
    """

    mission: str = ""
    task: str = ""
    task_at: float = 0.0
    host: str = ""
    local: str = ""
    last_tool: str = ""
    facts: tuple[tuple[str, str], ...] = ()
