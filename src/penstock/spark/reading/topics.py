"""What the driver asks the cluster before each batch: which partitions there are, and where their records begin and end.

One Metadata request and one ListOffsets request to each leader, over connections that stay open: this is in the way of
every micro-batch. Retriable errors (an election, a broker that restarts) are tried again until patience ends; a cluster
that was never reached is told at once, with its address.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from penstock.client import brokers
from penstock.client.brokers import Brokers
from penstock.client.error_names import error_name
from penstock.client.errors import AccessRefused, ReadFailed
from penstock.client.leaders import Leader, check
from penstock.client.options import ClientOptions, client_options
from penstock.client.patience import Retriable
from penstock.client.properties import SECURITY_NAMES
from penstock.model.errors import ErrorCode
from penstock.model.ids import NO_ID, TopicPartition, id_text
from penstock.spark.kafka_properties import cluster_only, refused
from penstock.spark.options import Subscription
from penstock.spark.reading.offsets import EARLIEST, LATEST, Offsets, TopicIds

T = TypeVar("T")

FIRST_CONTACT_TIMEOUT_S = 5.0
GONE_AFTER_S = 20.0
"""A topic that was read is gone when every answer for so long says so: a broker that has just started may not know it yet."""
# Of the Java consumer's properties, those that mean something to our reader; the others are for its poll loop.
READER_PROPERTIES = frozenset(
    {"client.id", "fetch.max.bytes", "max.partition.fetch.bytes", "fetch.max.wait.ms", "request.timeout.ms",
     "default.api.timeout.ms", "retry.backoff.ms", "retry.backoff.max.ms", *SECURITY_NAMES}
)  # fmt: skip


def reader_options(properties: Mapping[str, str]) -> ClientOptions:
    """For penstock.arrow, whose complaints begin with a property's name."""
    given: dict[str, str | int] = {
        name: value for name, value in properties.items() if name in READER_PROPERTIES
    }
    given.setdefault("client.id", "penstock-spark")
    try:
        return client_options(properties["bootstrap.servers"], given)
    except ValueError as error:
        raise refused(error) from None


def gone_after_s(options: ClientOptions) -> float:
    return min(GONE_AFTER_S, options.default_api_timeout_ms / 2000)


def check_reachable(properties: Mapping[str, str]) -> None:
    """ReadFailed with the addresses if nobody takes a connection at any of them, or lets us in."""
    options = reader_options(cluster_only(properties))
    try:
        brokers.check_reachable(options, timeout_s=FIRST_CONTACT_TIMEOUT_S)
    except ReadFailed as error:
        raise ReadFailed(_with_option(str(error))) from None


def why_unreachable(properties: Mapping[str, str]) -> str | None:
    """What keeps us from the cluster, in one line, where librdkafka only knows that it got no answer."""
    try:
        check_reachable(properties)
    except ReadFailed as error:
        return str(error)
    return None


def _with_option(complaint: str) -> str:
    """Options are named as Spark's users write them."""
    named, count = re.subn(r"\(option ([a-z.]+)\)", r"(option 'kafka.\1')", complaint)
    return named if count else f"{complaint} (option 'kafka.bootstrap.servers')"


class Topics:
    """The partitions of one subscription. Use from one thread."""

    def __init__(
        self, subscription: Subscription, properties: Mapping[str, str], *, is_read_committed: bool
    ) -> None:
        self._subscription = subscription
        self.topic_ids: TopicIds = {}
        """As the cluster had them when it was asked last; it may be too old to have any."""
        self._expected: set[str] = set()
        self._missing_since_s: dict[str, float] = {}
        self._options = reader_options(properties)
        self._isolation_level = int(is_read_committed)
        self._brokers = Brokers(self._options, named=_with_option)
        self._leaders: dict[TopicPartition, Leader] = {}

    def close(self) -> None:
        self._brokers.close()

    def expect(self, places: Iterable[TopicPartition]) -> None:
        """The query has read these: their topics are not taken for gone because one answer does not have them."""
        self._expected.update(place.topic for place in places)

    def partitions(self, *, may_be_missing: bool = False) -> list[TopicPartition]:
        """In order. ReadFailed for a topic that was named and is not there, unless it may be missing."""

        def ask() -> list[TopicPartition]:
            self._refresh(may_be_missing)
            return sorted(self._leaders)

        return self._patiently(ask)

    def ends(self) -> Offsets:
        """As `latest` of all partitions that there are; what goes meanwhile is left out."""

        def ask() -> Offsets:
            self._refresh(may_be_missing=True)
            return _known(self._list_offsets(dict.fromkeys(sorted(self._leaders), LATEST)))

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
        return _known(self.at(wanted))

    def _patiently(self, attempt: Callable[[], T]) -> T:
        try:
            return self._brokers.patiently(attempt, before_next=self._doubt)
        except AccessRefused as error:
            raise ReadFailed(_with_option(str(error))) from None

    def _doubt(self) -> None:
        self._leaders = {}
        self._brokers.doubt()

    def _refresh(self, may_be_missing: bool) -> None:
        subscription = self._subscription
        names = sorted({*subscription.topics, *(place.topic for place in subscription.partitions)})
        answer = self._brokers.metadata(None if subscription.pattern is not None else names)
        wanted = None if subscription.pattern is None else re.compile(subscription.pattern)
        leaders: dict[TopicPartition, Leader] = {}
        topic_ids: TopicIds = {}
        for topic in answer.topics:
            name = topic.name or ""
            # Anywhere in a name, as in Spark's own source.
            if wanted is not None and (topic.is_internal or wanted.search(name) is None):
                continue
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if not may_be_missing and wanted is None and name not in self._expected:
                    raise ReadFailed(self._unknown(name))
                continue
            check(topic.error_code, name)
            if topic.topic_id != NO_ID:
                topic_ids[name] = id_text(topic.topic_id)
            for partition in topic.partitions:
                place = TopicPartition(name, partition.partition_index)
                leaders[place] = Leader(partition.leader_id, partition.leader_epoch)
        self._expected.update(place.topic for place in leaders)
        self._wait_for_missing(self._expected - {place.topic for place in leaders})
        if subscription.partitions:
            assigned = set(subscription.partitions)
            if not may_be_missing and not assigned <= leaders.keys():
                missing = min(assigned - leaders.keys())
                raise ReadFailed(f"option 'assign' names {missing}, which does not exist")
            leaders = {place: leader for place, leader in leaders.items() if place in assigned}
        self._leaders, self.topic_ids = leaders, topic_ids

    def _wait_for_missing(self, missing: set[str]) -> None:
        """Retriable while a topic that was there may come back; then it is gone, and not waited for again."""
        now_s = time.monotonic()
        patience_s = gone_after_s(self._options)
        self._missing_since_s = {name: self._missing_since_s.get(name, now_s) for name in missing}
        for name, since_s in self._missing_since_s.items():
            if now_s - since_s < patience_s:
                raise Retriable(f"{name}: {error_name(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}")
        self._expected -= missing
        self._missing_since_s.clear()

    def _unknown(self, name: str) -> str:
        option = "subscribe" if self._subscription.topics else "assign"
        answer = self._brokers.metadata(None)
        near = difflib.get_close_matches(name, [topic.name or "" for topic in answer.topics], n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return f"option '{option}' names the topic '{name}', which does not exist{hint}"

    def _list_offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        if not timestamps.keys() <= self._leaders.keys():
            self._refresh(may_be_missing=True)
        for place in timestamps:
            if place not in self._leaders:
                raise Retriable(f"{place} does not exist")
        return self._brokers.offsets(timestamps, self._leaders, isolation_level=self._isolation_level)


def _known(offsets: Mapping[TopicPartition, int | None]) -> Offsets:
    return {place: offset or 0 for place, offset in offsets.items()}
