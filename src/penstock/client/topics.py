"""What a reader asks the cluster before it fetches: who leads each partition, and where its records begin and end.

Retriable errors, such as a leader that is being elected, are tried again until `default.api.timeout.ms` is over.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from penstock.client.brokers import Brokers
from penstock.client.connection import BrokerConnection
from penstock.client.errors import NoSuchTopic, ReadFailed
from penstock.client.leaders import Leader, check
from penstock.client.options import ClientOptions
from penstock.client.patience import Retriable
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from penstock.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from penstock.wire.schema import Message

T = TypeVar("T")
R = TypeVar("R", bound=Message)

TOPIC_RESOURCE: Final = 2

EARLIEST: Final = -2
LATEST: Final = -1


class Topic(NamedTuple):
    """As a Metadata answer describes it."""

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
        self._brokers = Brokers(options, is_known=is_known, named=_with_argument)

    def close(self) -> None:
        self._brokers.close()

    def connect(self, node_id: int) -> BrokerConnection:
        """A new connection to a broker; Retriable where it cannot be reached now."""
        return self._brokers.connect(node_id)

    def ask(self, node_id: int, request: Message, answer: type[R], *, highest: int | None = None) -> R:
        """Of one broker, over a connection that stays open; `highest` bounds the version. Retriable."""
        return self._brokers.ask(node_id, request, answer, highest=highest)

    def topic(self, name: str) -> Topic:
        """NoSuchTopic at once where no broker that answers knows it."""
        return self.patiently(lambda: self._ask_topic(name))

    def topic_names(self) -> list[str]:
        described = self.patiently(lambda: self._brokers.metadata(None))
        return sorted(topic.name or "" for topic in described.topics)

    def offsets(
        self, topic: Topic, timestamps: Mapping[int, int], *, isolation_level: int
    ) -> dict[int, int | None]:
        """For each partition the first offset at or after a time in ms, or EARLIEST or LATEST; None: all are older."""
        return self.patiently(
            lambda: self.led_offsets(self._ask_topic(topic.name), timestamps, isolation_level=isolation_level)
        )

    def led_offsets(
        self, topic: Topic, timestamps: Mapping[int, int], *, isolation_level: int
    ) -> dict[int, int | None]:
        """As `offsets`, once, of the leaders that `topic` names. Retriable."""
        leaders = {TopicPartition(topic.name, number): leader for number, leader in topic.leaders.items()}
        wanted = {TopicPartition(topic.name, number): timestamp for number, timestamp in timestamps.items()}
        found = self._brokers.offsets(wanted, leaders, isolation_level=isolation_level)
        return {place.partition: offset for place, offset in found.items()}

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
        return self._brokers.patiently(attempt)

    def doubt(self) -> None:
        """What a broker said led nowhere: it may be cut off from the others. The next one is asked from now on."""
        self._brokers.doubt()

    def _describe(self, name: str) -> DescribeConfigsResponse:
        resource = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=["cleanup.policy"]
        )
        return self._brokers.ask_any(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)

    def _ask_topic(self, name: str) -> Topic:
        found = _only(self._brokers.metadata([name]), name)
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            found = self._describe_elsewhere(name) or found
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NoSuchTopic(name, difflib.get_close_matches(name, self.topic_names(), n=3))
        check(found.error_code, name)
        leaders = {}
        for partition in found.partitions:
            leaders[partition.partition_index] = Leader(partition.leader_id, partition.leader_epoch)
        return Topic(name, found.topic_id, dict(sorted(leaders.items())))

    def _describe_elsewhere(self, name: str) -> MetadataResponseTopic | None:
        """One broker may not have heard of a topic: it has just started, or is cut off. Who knows it is asked from now on."""
        asked = self._brokers.answered
        for address in tuple(self._brokers.addresses.values()):
            if address == asked:
                continue
            try:
                found = _only(self._brokers.metadata_at(address, [name]), name)
            except (Retriable, ReadFailed):
                continue
            if found.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return found
        return None


def _only(described: MetadataResponse, name: str) -> MetadataResponseTopic:
    if not described.topics:
        raise ReadFailed(f"{name}: the broker did not answer what was asked")
    return described.topics[0]


def _with_argument(complaint: str) -> str:
    return f"bootstrap: {complaint}"
