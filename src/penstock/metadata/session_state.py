"""The state of a session with a metadata store."""

from typing import NamedTuple


class SessionState(NamedTuple):
    trouble: str = ""
    """Why the store does not serve us, in a line for the operator; empty while it does."""
    disconnects: int = 0
    """How often a session lost its connection."""
    expirations: int = 0
    """How many sessions have ended against our will."""
