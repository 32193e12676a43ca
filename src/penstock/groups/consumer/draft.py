"""Draft: what becomes of a group in one turn. Each change is a record for the log, and made on a copy for all to see.

A turn that changes nothing (most heartbeats) copies nothing. A draft that is refused half-way is dropped with its records;
the group itself has not been touched.
"""

from penstock.groups.consumer.records import (
    CURRENT,
    GROUP,
    MEMBER,
    PARTITION_METADATA,
    REGEX,
    TARGET,
    TARGET_EPOCH,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerKey,
    CurrentPartitions,
    CurrentValue,
    GroupValue,
    MemberValue,
    RegexValue,
    TargetEpochValue,
    TargetPartitions,
    TargetValue,
    Value,
    write_key,
    write_value,
)
from penstock.groups.consumer.state import ConsumerGroup, Member, Partitions, ResolvedRegex, Target


class Draft:
    __slots__ = ("group", "records", "_is_copied")  # noqa: RUF023

    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        """The group as it will be after the records so far."""
        self.records: list[tuple[bytes, bytes | None]] = []
        self._is_copied = False

    def set_epoch(self, group_epoch: int, metadata_hash: int) -> None:
        self._put(GROUP, "", GroupValue(epoch=group_epoch, metadata_hash=metadata_hash))

    def set_metadata(self, member: Member) -> None:
        """Who it is and what it wants; what it has is recorded on its own."""
        classic = member.classic
        value = MemberValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=None
            if classic is None
            else ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
                ],
            ),
        )
        self._put(MEMBER, member.member_id, value)

    def set_target(self, member_id: str, target: Target) -> None:
        parts = [
            TargetPartitions(topic_id=topic_id, partitions=sorted(target[topic_id]))
            for topic_id in sorted(target)
        ]
        self._put(TARGET, member_id, TargetValue(topic_partitions=parts))

    def set_target_epoch(self, assignment_epoch: int, timestamp_ms: int) -> None:
        value = TargetEpochValue(assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms)
        self._put(TARGET_EPOCH, "", value)

    def set_current(self, member: Member) -> None:
        value = CurrentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            assigned_partitions=_parts(member.assigned),
            partitions_pending_revocation=_parts(member.pending_revocation),
        )
        self._put(CURRENT, member.member_id, value)

    def set_regex(self, regex: str, resolved: ResolvedRegex) -> None:
        value = RegexValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
        )
        self._put(REGEX, regex, value)

    def drop_member(self, member_id: str) -> None:
        for kind in (CURRENT, TARGET, MEMBER):
            self._drop(kind, member_id)

    def drop_regex(self, regex: str) -> None:
        self._drop(REGEX, regex)

    def drop_partition_metadata(self) -> None:
        """Kept by brokers before 4.1; the hash in the group's record has replaced it."""
        if self.group.has_partition_metadata:
            self._drop(PARTITION_METADATA, "")

    def drop_group(self) -> None:
        """Everything, in the order in which Kafka can read it back."""
        members = list(self.group.members)
        for kind in (CURRENT, TARGET):
            for member_id in members:
                self._drop(kind, member_id)
        self._drop(TARGET_EPOCH, "")
        for member_id in members:
            self._drop(MEMBER, member_id)
        for regex in list(self.group.regexes):
            self._drop(REGEX, regex)
        self._drop(PARTITION_METADATA, "")
        self._drop(GROUP, "")

    def _put(self, kind: int, name: str, value: Value) -> None:
        key = ConsumerKey(kind, self.group.group_id, name)
        self.records.append((write_key(*key), write_value(value)))
        self._own_group().put(key, value)

    def _drop(self, kind: int, name: str) -> None:
        key = ConsumerKey(kind, self.group.group_id, name)
        self.records.append((write_key(*key), None))
        self._own_group().drop(key)

    def _own_group(self) -> ConsumerGroup:
        if not self._is_copied:
            self.group = self.group.copy()
            self._is_copied = True
        return self.group


def _parts(partitions: Partitions) -> list[CurrentPartitions]:
    parts = []
    for topic_id in sorted(partitions):
        epochs = partitions[topic_id]
        indexes = sorted(epochs)
        parts.append(
            CurrentPartitions(
                topic_id=topic_id, partitions=indexes, assignment_epochs=[epochs[index] for index in indexes]
            )
        )
    return parts
