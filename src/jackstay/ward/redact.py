"""How does anything that leaves the harness lose its secrets?"""

from jackstay.policy.masking import redact_value
from jackstay.policy.secrets import redact, secrets_in

__all__ = ["redact", "redact_value", "secrets_in"]
