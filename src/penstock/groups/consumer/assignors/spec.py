"""What an assignor is told about a member."""

from collections.abc import Mapping
from typing import NamedTuple


class MemberSpec(NamedTuple):
    instance_id: str | None
    topic_ids: frozenset[bytes]
    """What it subscribes to, as far as it exists."""
    target: Mapping[bytes, frozenset[int]]
    """What it was to have so far."""
