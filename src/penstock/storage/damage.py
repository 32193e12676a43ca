"""Damage that prevents a log from being read, or a follower's log from growing."""

from typing import Final, NamedTuple

OURS: Final = -1


class Damage(NamedTuple):
    offset: int
    """Somebody asked for it; the damage is there or a little before."""
    cause: str
    broker_id: int
    """Whose log is damaged: OURS, or the leader's from which we fetch."""
    found_ms: int
    told_ms: int
    """When the operator was last told."""
