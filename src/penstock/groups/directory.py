"""GroupDirectory: all groups of a shard, of either protocol, and their offsets.

Here is the hard state, and `replay`, which alone changes it. Beside it are the classic groups that are alive (soft).
A group id is known as a classic group or as a consumer group, never as both.
"""

from penstock.coordination.form import NO_PRODUCER_ID
from penstock.groups.consumer.groups import ConsumerGroups
from penstock.groups.consumer.records import is_consumer_key
from penstock.groups.offset_book import OffsetBook
from penstock.groups.records import (
    GROUP_KEY,
    OFFSET_KEYS,
    GroupKey,
    GroupMetadata,
    check_offset,
    read_group,
    read_key,
)
from penstock.groups.state import Group, GroupState
from penstock.groups.topics import Topics
from penstock.model.errors import ApiError, ErrorCode


class GroupDirectory:
    __slots__ = ("alive", "consumers", "metadata", "offsets")

    def __init__(self, topics: Topics) -> None:
        self.metadata: dict[str, GroupMetadata] = {}
        self.offsets = OffsetBook()
        self.alive: dict[str, Group] = {}
        """Soft: classic groups that have members, or ids given out to members to be."""
        self.consumers = ConsumerGroups(topics=topics, classic_groups=self.alive)

    # ── hard ────────────────────────────────────────────────────────────────────────────────────────────────

    def replay(self, key: bytes, value: bytes | None, producer_id: int) -> None:
        kind = key[:2]
        if kind in OFFSET_KEYS:
            # By far the most frequent record, so its key is cut by hand: group: string, then the place.
            end = 4 + (key[2] << 8) + key[3] if len(key) >= 10 else len(key)
            if end > len(key) - 6:
                raise ValueError("the key of an offset ends too early")
            group = key[4:end].decode()
            if value is None:
                self.offsets.remove(group, key[end:])
                return
            check_offset(value)
            if producer_id == NO_PRODUCER_ID:
                self.offsets.put(group, key[end:], value)
            else:
                self.offsets.put_pending(group, key[end:], value, producer_id)
        elif kind == GROUP_KEY:
            name = read_key(key)
            assert isinstance(name, GroupKey)
            if value is not None:
                self.metadata[name.group] = read_group(value)
            else:
                self.metadata.pop(name.group, None)
        elif is_consumer_key(key):
            self.consumers.replay(key, value)
        elif len(kind) < len(GROUP_KEY):
            raise ValueError("a record without a key")

    def hard_state(self) -> object:
        return (self.metadata, self.offsets.hard_state(), self.consumers.hard_state())

    # ── classic groups ──────────────────────────────────────────────────────────────────────────────────────

    def find(self, group_id: str) -> Group | None:
        """The group as it lives, or as it is recorded; one that has only offsets is an empty one."""
        group = self.alive.get(group_id)
        if group is not None:
            return group
        metadata = self.metadata.get(group_id)
        if metadata is not None:
            return Group.from_metadata(group_id, metadata)
        has_only_offsets = self.consumers.get(group_id) is None and self.offsets.has(group_id)
        return Group(group_id, 0) if has_only_offsets else None

    def known(self, group_id: str, otherwise: ErrorCode) -> Group:
        group = self.find(group_id)
        if group is None:
            raise ApiError(otherwise)
        return group

    def settle(self, group: Group) -> None:
        """An empty group that nobody is about to join need not be kept alive: its record says all."""
        if is_idle(group):
            self.alive.pop(group.group_id, None)

    # ── all ─────────────────────────────────────────────────────────────────────────────────────────────────

    def names(self) -> list[str]:
        known = (*self.metadata, *self.offsets.groups(), *self.alive, *self.consumers.ids())
        return list(dict.fromkeys(known))


def is_idle(group: Group) -> bool:
    return group.state is GroupState.EMPTY and not group.pending_members
