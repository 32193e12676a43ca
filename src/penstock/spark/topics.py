"""What the driver asks the cluster before each batch: which partitions there are, and where their records begin and end.

One Metadata request and one ListOffsets request to each leader, over connections that stay open: this is in the way of
every micro-batch. Errors that pass (an election, a broker that restarts) are tried again until patience ends; a cluster
that was never reached is told at once, with its address.
"""

from __future__ import annotations

import difflib
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from penstock.arrow.client import RETRIABLE, Passing, error_name
from penstock.arrow.connection import BrokerConnection
from penstock.arrow.errors import ReadFailed
from penstock.arrow.options import Address, ClientOptions, client_options
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.spark.failures import BadOption
from penstock.spark.kafka_properties import cluster_only
from penstock.spark.offsets import EARLIEST, LATEST, Offsets
from penstock.spark.options import Subscription
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

T = TypeVar("T")

FIRST_CONTACT_TIMEOUT_S = 5.0
RETRY_PAUSE_S = 0.1
# Of the Java consumer's properties, those that mean something to our reader; the others are for its poll loop.
READER_PROPERTIES = frozenset(
    {"client.id", "fetch.max.bytes", "max.partition.fetch.bytes", "fetch.max.wait.ms", "request.timeout.ms",
     "default.api.timeout.ms"}
)  # fmt: skip
SECURITY_PREFIXES = ("sasl.", "security.protocol", "ssl.")


def reader_options(properties: Mapping[str, str], *, with_security: bool = True) -> ClientOptions:
    """For penstock.arrow, whose complaints begin with a property's name."""
    given: dict[str, str | int] = {
        name: value
        for name, value in properties.items()
        if name in READER_PROPERTIES or (with_security and name.startswith(SECURITY_PREFIXES))
    }
    given.setdefault("client.id", "penstock-spark")
    try:
        return client_options(properties["bootstrap.servers"], given)
    except ValueError as error:
        name, _, complaint = str(error).partition(": ")
        option = "kafka.bootstrap.servers" if name == "bootstrap" else f"kafka.{name}"
        raise BadOption(option, f"cannot be used: {complaint}") from None


def check_reachable(properties: Mapping[str, str]) -> None:
    """ReadFailed with the addresses if nobody takes a connection at any of them."""
    complaints = []
    for address in reader_options(cluster_only(properties), with_security=False).addresses:
        try:
            socket.create_connection(address, timeout=FIRST_CONTACT_TIMEOUT_S).close()
            return
        except OSError as error:
            complaints.append(f"cannot reach a broker at {address}: {error.strerror or error}")
    raise ReadFailed("; ".join(complaints) + " (option 'kafka.bootstrap.servers')")


class Topics:
    """The partitions of one subscription. Use from one thread."""

    def __init__(
        self, subscription: Subscription, properties: Mapping[str, str], *, is_read_committed: bool
    ) -> None:
        self._subscription = subscription
        self._options = reader_options(properties)
        self._isolation_level = int(is_read_committed)
        self._brokers: dict[int, Address] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._connections: dict[Address, BrokerConnection] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def partitions(self, *, may_be_missing: bool = False) -> list[TopicPartition]:
        """In order. ReadFailed for a topic that was named and is not there, unless it may be missing."""

        def ask() -> list[TopicPartition]:
            self._refresh(may_be_missing)
            return sorted(self._leaders)

        return self._patiently(ask)

    def earliest(self, places: Iterable[TopicPartition]) -> Offsets:
        return self._certain(dict.fromkeys(places, EARLIEST))

    def latest(self, places: Iterable[TopicPartition]) -> Offsets:
        """Exclusive; where a reader of committed records is stopped by an open transaction, that is the end."""
        return self._certain(dict.fromkeys(places, LATEST))

    def at(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset whose record is as late; None where all are earlier."""
        return self._patiently(lambda: self._list_offsets(timestamps_ms)) if timestamps_ms else {}

    def _certain(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        return {place: offset or 0 for place, offset in self.at(wanted).items()}

    def _patiently(self, attempt: Callable[[], T]) -> T:
        deadline_s = time.monotonic() + self._options.default_api_timeout_ms / 1000
        while True:
            try:
                return attempt()
            except Passing as error:
                if time.monotonic() + RETRY_PAUSE_S > deadline_s:
                    raise ReadFailed(str(error)) from None
                time.sleep(RETRY_PAUSE_S)
                self._leaders = {}

    def _refresh(self, may_be_missing: bool) -> None:
        subscription = self._subscription
        names = sorted({*subscription.topics, *(place.topic for place in subscription.partitions)})
        topics = (
            None if subscription.pattern is not None else [MetadataRequestTopic(name=name) for name in names]
        )
        answer: MetadataResponse = self._ask_any(
            MetadataRequest(topics=topics, allow_auto_topic_creation=False), MetadataResponse
        )
        self._brokers = {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers}
        wanted = None if subscription.pattern is None else re.compile(subscription.pattern)
        leaders: dict[TopicPartition, int] = {}
        for topic in answer.topics:
            name = topic.name or ""
            if wanted is not None and (topic.is_internal or wanted.fullmatch(name) is None):
                continue
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if not may_be_missing and wanted is None:
                    raise ReadFailed(self._unknown(name))
                continue
            _check(topic.error_code, name)
            for partition in topic.partitions:
                leaders[TopicPartition(name, partition.partition_index)] = partition.leader_id
        if subscription.partitions:
            assigned = set(subscription.partitions)
            if not may_be_missing and not assigned <= leaders.keys():
                missing = min(assigned - leaders.keys())
                raise ReadFailed(f"option 'assign' names {missing}, which does not exist")
            leaders = {place: leader for place, leader in leaders.items() if place in assigned}
        self._leaders = leaders

    def _unknown(self, name: str) -> str:
        option = "subscribe" if self._subscription.topics else "assign"
        answer = self._ask_any(
            MetadataRequest(topics=None, allow_auto_topic_creation=False), MetadataResponse
        )
        near = difflib.get_close_matches(name, [topic.name or "" for topic in answer.topics], n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return f"option '{option}' names the topic '{name}', which does not exist{hint}"

    def _list_offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        if not timestamps.keys() <= self._leaders.keys():
            self._refresh(may_be_missing=True)
        by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
        for place, timestamp in timestamps.items():
            if place not in self._leaders:
                raise Passing(f"{place} does not exist")
            asked = ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
            by_leader.setdefault(self._leaders[place], {}).setdefault(place.topic, []).append(asked)
        found: dict[TopicPartition, int | None] = {}
        for leader, topics in by_leader.items():
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=self._isolation_level,
                topics=[ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()],
            )
            if leader not in self._brokers:
                raise Passing("a partition has no leader")
            answer: ListOffsetsResponse = self._ask(self._brokers[leader], request, ListOffsetsResponse)
            for topic in answer.topics:
                for one in topic.partitions:
                    place = TopicPartition(topic.name, one.partition_index)
                    _check(one.error_code, str(place))
                    found[place] = one.offset if one.offset >= 0 else None
        return found

    def _ask_any(self, request: Any, answer: Any) -> Any:
        """A broker that is connected, else one that was known, else one of those that were given."""
        complaints: dict[Address, str] = {}
        for address in dict.fromkeys((*self._connections, *self._brokers.values(), *self._options.addresses)):
            try:
                return self._ask(address, request, answer)
            except Passing as error:
                complaints[address] = str(error)
        complaint = "; ".join(complaints.values()) + " (option 'kafka.bootstrap.servers')"
        if self._brokers:
            raise Passing(complaint)  # it was there a moment ago
        raise ReadFailed(complaint)

    def _ask(self, address: Address, request: Any, answer: Any) -> Any:
        try:
            connection = self._connections.get(address)
            if connection is None:
                timeout_s = self._options.request_timeout_ms / 1000
                if not self._brokers:
                    timeout_s = min(timeout_s, FIRST_CONTACT_TIMEOUT_S)
                connection = BrokerConnection(address, client_id=self._options.client_id, timeout_s=timeout_s)
                self._connections[address] = connection
            return connection.ask(request, answer)
        except OSError as error:
            if (broken := self._connections.pop(address, None)) is not None:
                broken.close()
            raise Passing(f"cannot reach a broker at {address}: {error.strerror or error}".rstrip()) from None


def _check(error_code: int, what: str) -> None:
    if error_code in RETRIABLE:
        raise Passing(f"{what}: {error_name(error_code)}")
    if error_code:
        raise ReadFailed(f"{what}: {error_name(error_code)}")
