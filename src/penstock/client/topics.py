"""What a reader asks the cluster before it fetches: who leads each partition, and where its records begin and end.

Errors that pass, such as a leader that is being elected, are tried again until `default.api.timeout.ms` is over.
"""

from __future__ import annotations

import difflib
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from penstock.client.connection import BrokerConnection
from penstock.client.errors import NoSuchTopic, ReadFailed
from penstock.client.options import ClientOptions
from penstock.model.endpoints import Address
from penstock.model.errors import ErrorCode
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from penstock.wire.schema import Message

T = TypeVar("T")
R = TypeVar("R", bound=Message)

TOPIC_RESOURCE: Final = 2

EARLIEST: Final = -2
LATEST: Final = -1
RETRIABLE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
RETRY_PAUSE_S: Final = 0.1


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    leaders: dict[int, int]
    """Partition → node id; -1 while there is no leader."""


class Passing(Exception):
    """An error that may be gone at the next attempt."""


class Client:
    """Use from one thread. Fetching has connections of its own.

    A cluster that was there a moment ago is waited for; one that was never met is refused at once. `is_known` says that
    somebody else has met it.
    """

    def __init__(self, options: ClientOptions, *, is_known: bool = False) -> None:
        self.options = options
        self._is_known = is_known
        self._addresses: dict[int, Address] = {}
        self._connection: BrokerConnection | None = None
        self._doubted: Address | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def connect(self, node_id: int) -> BrokerConnection:
        """A new connection to a broker; Passing where it cannot be reached now."""
        address = self._addresses.get(node_id)
        if address is None:
            raise Passing("a partition has no leader")
        try:
            return self._open(address)
        except OSError as error:
            raise Passing(f"cannot reach the broker at {address}: {_reason(error)}") from None

    def topic(self, name: str) -> Topic:
        """NoSuchTopic at once where no broker that answers knows it."""
        return self.patiently(lambda: self._ask_topic(name))

    def topic_names(self) -> list[str]:
        return sorted(topic.name or "" for topic in self.patiently(lambda: self._metadata(None)).topics)

    def offsets(
        self, topic: Topic, timestamps: Mapping[int, int], *, isolation_level: int
    ) -> dict[int, int | None]:
        """For each partition the first offset at or after a time in ms, or EARLIEST or LATEST; None: all are older."""
        return self.patiently(lambda: self._ask_offsets(topic.name, timestamps, isolation_level))

    def is_compacted(self, topic: Topic) -> bool:
        """Whether a compaction may have removed records of the topic; no where the cluster does not tell us."""
        try:
            answer = self.patiently(lambda: self._describe(topic.name))
        except ReadFailed:
            return False
        policies = (
            config.value or ""
            for result in answer.results
            for config in result.configs
            if config.name == "cleanup.policy"
        )
        return any("compact" in policy.split(",") for policy in policies)

    def patiently(self, attempt: Callable[[], T]) -> T:
        """Tries again what may pass, until the patience of the options is over."""
        deadline = time.monotonic() + self.options.default_api_timeout_ms / 1000
        while True:
            try:
                return attempt()
            except Passing as error:
                if time.monotonic() + RETRY_PAUSE_S > deadline:
                    raise ReadFailed(str(error)) from None
                time.sleep(RETRY_PAUSE_S)
                self.doubt()

    def doubt(self) -> None:
        """What a broker said led nowhere: it may be cut off from the others. The next one is asked from now on."""
        if self._connection is not None:
            self._doubted = self._connection.address
            self.close()

    def _candidates(self) -> list[Address]:
        return those_after((*self.options.addresses, *self._addresses.values()), self._doubted)

    def _open(self, address: Address) -> BrokerConnection:
        timeout_s = self.options.request_timeout_ms / 1000
        return BrokerConnection(
            address, client_id=self.options.client_id, timeout_s=timeout_s, security=self.options.security
        )

    def _any_connection(self) -> BrokerConnection:
        """The one that is open, or one to the first address that takes us; ReadFailed at once where none does."""
        if self._connection is not None:
            return self._connection
        reasons = []
        for address in self._candidates():
            try:
                self._connection = self._open(address)
            except OSError as error:
                reasons.append(f"{address}: {_reason(error)}")
            else:
                return self._connection
        complaint = f"bootstrap: cannot reach a broker at {'; '.join(dict.fromkeys(reasons))}"
        if self._addresses or self._is_known:
            raise Passing(complaint)
        raise ReadFailed(complaint)

    def _ask_any(self, request: Message, response: type[R]) -> R:
        connection = self._any_connection()
        try:
            return connection.ask(request, response)
        except OSError as error:
            self.close()
            complaint = f"the broker at {connection.address} stopped answering: {_reason(error)}"
            if self._addresses:
                raise Passing(complaint) from None
            raise ReadFailed(complaint) from None  # it has never answered: more likely it does not want to

    def _metadata(self, name: str | None) -> MetadataResponse:
        topics = None if name is None else [MetadataRequestTopic(name=name)]
        answer = self._ask_any(
            MetadataRequest(topics=topics, allow_auto_topic_creation=False), MetadataResponse
        )
        self._addresses = {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers}
        return answer

    def _describe(self, name: str) -> DescribeConfigsResponse:
        resource = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=["cleanup.policy"]
        )
        return self._ask_any(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)

    def _ask_topic(self, name: str) -> Topic:
        found = self._describe_topic(name)
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            found = self._describe_elsewhere(name) or found
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NoSuchTopic(name, difflib.get_close_matches(name, self.topic_names(), n=3))
        _check(found.error_code, name)
        leaders = {}
        for partition in found.partitions:
            leaders[partition.partition_index] = partition.leader_id
        return Topic(name, found.topic_id, dict(sorted(leaders.items())))

    def _describe_topic(self, name: str) -> MetadataResponseTopic:
        answered = self._metadata(name).topics
        if not answered:
            raise ReadFailed(f"{name}: the broker did not answer what was asked")
        return answered[0]

    def _describe_elsewhere(self, name: str) -> MetadataResponseTopic | None:
        """One broker may not have heard of a topic: it has just started, or is cut off. Who knows it is asked from now on."""
        asked = None if self._connection is None else self._connection.address
        for address in tuple(self._addresses.values()):
            if address == asked:
                continue
            self.close()
            try:
                self._connection = self._open(address)
                found = self._describe_topic(name)
            except (OSError, Passing, ReadFailed):
                continue
            if found.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return found
        return None

    def _ask_offsets(
        self, name: str, timestamps: Mapping[int, int], isolation_level: int
    ) -> dict[int, int | None]:
        leaders = self._ask_topic(name).leaders
        by_leader: dict[int, list[ListOffsetsPartition]] = {}
        for partition, timestamp in timestamps.items():
            asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            by_leader.setdefault(leaders.get(partition, -1), []).append(asked)
        found: dict[int, int | None] = {}
        for leader, partitions in by_leader.items():
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation_level,
                topics=[ListOffsetsTopic(name=name, partitions=partitions)],
            )
            connection = self.connect(leader)
            try:
                answer = connection.ask(request, ListOffsetsResponse)
            except OSError as error:
                raise Passing(
                    f"the broker at {connection.address} stopped answering: {_reason(error)}"
                ) from None
            finally:
                connection.close()
            for topic in answer.topics:
                for one in topic.partitions:
                    _check(one.error_code, f"{name}-{one.partition_index}")
                    found[one.partition_index] = one.offset if one.offset >= 0 else None
        return found


def those_after(addresses: Iterable[Address], doubted: Address | None) -> list[Address]:
    """Each address once, those first that come after the doubted one. A broker may have two: so all have their turn."""
    each = list(dict.fromkeys(addresses))
    first = each.index(doubted) + 1 if doubted is not None and doubted in each else 0
    return each[first:] + each[:first]


def _check(error_code: int, what: str) -> None:
    if error_code in RETRIABLE:
        raise Passing(f"{what}: {error_name(error_code)}")
    if error_code:
        raise ReadFailed(f"{what}: {error_name(error_code)}")


def error_name(error_code: int) -> str:
    try:
        return ErrorCode(error_code).name
    except ValueError:
        return f"error {error_code}"


def _reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return "unknown host"
    return error.strerror.lower() if error.strerror else str(error)
