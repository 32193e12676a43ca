"""Groups by librdkafka's admin client: for clusters behind TLS or SASL.

It has no epochs, no protocol types and no deleting of offsets; what is missing stays empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.cli.clients import Connection, admin_types, metadata, result, translated
from penstock.cli.error_names import full_exception_name
from penstock.cli.failures import Refused, UserError
from penstock.cli.groups.model import (
    EARLIEST,
    LATEST,
    Committed,
    Coordinator,
    DeletedOffsets,
    Description,
    Listing,
    Member,
)
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

STATE_NAMES = {
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "DEAD": "Dead",
    "EMPTY": "Empty",
    "ASSIGNING": "Assigning",
    "RECONCILING": "Reconciling",
}


class LibrdkafkaGroups:
    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._admin = connection.admin()
        self._timeout_s = timeout_s

    def close(self) -> None:
        """librdkafka's threads end with the process."""

    def listing(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[Listing]:
        # The filters are applied here: librdkafka refuses some of the combinations that a broker takes.
        wanted_states, wanted_types = set(states), set(types)
        listed = result(self._admin.list_consumer_groups(request_timeout=self._timeout_s), self._timeout_s)
        if listed.errors:
            raise translated(listed.errors[0])
        found = [
            Listing(
                group.group_id,
                _type_name(group.type),
                _state_name(group.state),
                "" if group.is_simple_consumer_group else "consumer",
            )
            for group in listed.valid
        ]
        return [
            one
            for one in found
            if (not wanted_states or one.state in wanted_states)
            and (not wanted_types or one.type in wanted_types)
        ]

    def describe(self, group_ids: Iterable[str]) -> dict[str, Description | Refused]:
        wanted = list(dict.fromkeys(group_ids))
        if not wanted:
            return {}
        futures = self._admin.describe_consumer_groups(wanted, request_timeout=self._timeout_s)
        described: dict[str, Description | Refused] = {}
        for group_id, future in futures.items():
            try:
                found = _description(result(future, self._timeout_s))
                # librdkafka asks in a version that says "dead" of what is not there.
                described[group_id] = found if found.state != "Dead" else _not_found(group_id)
            except Refused as error:
                described[group_id] = error
        return described

    def committed(self, group_id: str) -> dict[TopicPartition, Committed]:
        import confluent_kafka

        asked = confluent_kafka.ConsumerGroupTopicPartitions(group_id)
        (future,) = self._admin.list_consumer_group_offsets([asked], request_timeout=self._timeout_s).values()
        return {
            TopicPartition(one.topic, one.partition): Committed(one.offset, one.leader_epoch)
            for one in result(future, self._timeout_s).topic_partitions
            if one.offset >= 0
        }

    def commit(self, group_id: str, offsets: dict[TopicPartition, int]) -> None:
        import confluent_kafka

        wanted = [
            confluent_kafka.TopicPartition(one.topic, one.partition, offset)
            for one, offset in offsets.items()
        ]
        asked = confluent_kafka.ConsumerGroupTopicPartitions(group_id, wanted)
        (future,) = self._admin.alter_consumer_group_offsets(
            [asked], request_timeout=self._timeout_s
        ).values()
        for one in result(future, self._timeout_s).topic_partitions:
            if one.error is not None:
                raise translated(confluent_kafka.KafkaException(one.error))

    def delete(self, group_ids: Iterable[str]) -> dict[str, Refused | None]:
        futures = self._admin.delete_consumer_groups(list(group_ids), request_timeout=self._timeout_s)
        deleted: dict[str, Refused | None] = {}
        for group_id, future in futures.items():
            try:
                result(future, self._timeout_s)
                deleted[group_id] = None
            except Refused as error:
                deleted[group_id] = error
        return deleted

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> DeletedOffsets:
        raise UserError("the offsets of a group can only be deleted over a PLAINTEXT connection for now")

    def partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        wanted = set(topics)
        if not wanted:
            return {}
        known = metadata(self._admin).topics
        return {name: sorted(known[name].partitions) for name in sorted(wanted) if name in known}

    def log_offsets(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        import confluent_kafka

        specs = admin_types().OffsetSpec
        if timestamp == LATEST:
            spec = specs.latest()
        elif timestamp == EARLIEST:
            spec = specs.earliest()
        else:
            spec = specs.for_timestamp(timestamp)
        asked = {confluent_kafka.TopicPartition(one.topic, one.partition): spec for one in set(partitions)}
        found = {}
        if asked:
            for one, future in self._admin.list_offsets(asked).items():
                try:
                    found[TopicPartition(one.topic, one.partition)] = result(future, self._timeout_s).offset
                except Refused:
                    continue
        return found


def _not_found(group_id: str) -> Refused:
    code = ErrorCode.GROUP_ID_NOT_FOUND
    return Refused(f"Group {group_id} not found.", code=code, exception_name=full_exception_name(code))


def _description(group: Any) -> Description:
    node = group.coordinator
    is_classic = _type_name(group.type) == "Classic"
    members = [
        Member(
            member.member_id,
            member.group_instance_id or "",
            member.client_id,
            member.host,
            _partitions(member.assignment),
            None if is_classic or member.target_assignment is None else _partitions(member.target_assignment),
        )
        for member in group.members
    ]
    return Description(
        group.group_id,
        _type_name(group.type),
        _state_name(group.state),
        group.partition_assignor,
        Coordinator(node.id, node.host, node.port),
        members,
    )


def _partitions(assignment: Any) -> list[TopicPartition]:
    return [TopicPartition(one.topic, one.partition) for one in assignment.topic_partitions]


def _type_name(kind: Any) -> str:
    return str(kind.name).capitalize()


def _state_name(state: Any) -> str:
    return STATE_NAMES.get(state.name, "Unknown")
