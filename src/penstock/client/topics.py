"""What a reader asks the cluster before it fetches: who leads each partition, and where its records begin and end.

Retriable errors, such as a leader that is being elected, are tried again until `default.api.timeout.ms` is over.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from penstock.client.connection import BrokerConnection
from penstock.client.errors import NoSuchTopic, ReadFailed, reason
from penstock.client.leaders import Leader, check, offset_requests, read_offsets
from penstock.client.options import ClientOptions
from penstock.client.patience import Retriable, patiently
from penstock.model.endpoints import Address
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from penstock.wire.messages.list_offsets import ListOffsetsResponse
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


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    leaders: dict[int, Leader]
    """By partition; its node id is -1 while there is no leader."""


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
        """A new connection to a broker; Retriable where it cannot be reached now."""
        address = self._addresses.get(node_id)
        if address is None:
            raise Retriable("a partition has no leader")
        try:
            return self._open(address)
        except OSError as error:
            raise Retriable(f"cannot reach the broker at {address}: {reason(error)}") from None

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
        """Tries again what is retriable, until the patience of the options is over."""
        try:
            return patiently(attempt, self.options.patience(), before_next=lambda _: self.doubt())
        except Retriable as error:
            raise ReadFailed(str(error)) from None

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
                reasons.append(f"{address}: {reason(error)}")
            else:
                return self._connection
        complaint = f"bootstrap: cannot reach a broker at {'; '.join(dict.fromkeys(reasons))}"
        if self._addresses or self._is_known:
            raise Retriable(complaint)
        raise ReadFailed(complaint)

    def _ask_any(self, request: Message, response: type[R]) -> R:
        connection = self._any_connection()
        try:
            return connection.ask(request, response)
        except OSError as error:
            self.close()
            complaint = f"the broker at {connection.address} stopped answering: {reason(error)}"
            if self._addresses:
                raise Retriable(complaint) from None
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
        check(found.error_code, name)
        leaders = {}
        for partition in found.partitions:
            leaders[partition.partition_index] = Leader(partition.leader_id, partition.leader_epoch)
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
            except (OSError, Retriable, ReadFailed):
                continue
            if found.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return found
        return None

    def _ask_offsets(
        self, name: str, timestamps: Mapping[int, int], isolation_level: int
    ) -> dict[int, int | None]:
        leaders = {
            TopicPartition(name, number): leader for number, leader in self._ask_topic(name).leaders.items()
        }
        wanted = {TopicPartition(name, number): timestamp for number, timestamp in timestamps.items()}
        found: dict[int, int | None] = {}
        for node_id, request in offset_requests(wanted, leaders, isolation_level=isolation_level).items():
            connection = self.connect(node_id)
            try:
                answer = connection.ask(request, ListOffsetsResponse)
            except OSError as error:
                raise Retriable(
                    f"the broker at {connection.address} stopped answering: {reason(error)}"
                ) from None
            finally:
                connection.close()
            found |= {place.partition: offset for place, offset in read_offsets(answer).items()}
        return found


def those_after(addresses: Iterable[Address], doubted: Address | None) -> list[Address]:
    """Each address once, those first that come after the doubted one. A broker may have two: so all have their turn."""
    each = list(dict.fromkeys(addresses))
    first = each.index(doubted) + 1 if doubted is not None and doubted in each else 0
    return each[first:] + each[:first]
