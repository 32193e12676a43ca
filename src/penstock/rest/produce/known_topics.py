"""Which topics are there and how many partitions they have, remembered for a while.

librdkafka tells of a topic that is not there only after half a minute; here it is asked for first, and made where the brokers
make topics by themselves, as Java's producer has it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from penstock.admin import Cluster
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import NoSuchTopic
from penstock.client.patience import Patience
from penstock.model.errors import ErrorCode
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

KEPT_S: Final = 300.0
MAX_KEPT: Final = 10_000
LEADER_PATIENCE_S: Final = 5.0
MISSING_KEPT_S: Final = 1.0
"""So that who writes to a topic that is not there does not keep the brokers busy."""
LOOKS: Final = 3
"""While a broker makes a topic it may say that it is not there."""


class Ask(Protocol):
    def __call__(self, question: Callable[[Cluster], int], /) -> Awaitable[int]: ...


class KnownTopics:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._found: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def at_once(self, topic: str) -> int | None:
        """How many partitions it has, as far as that is known."""
        known = self._found.get(topic)
        return known[0] or None if known is not None and time.monotonic() < known[1] else None

    async def partitions(self, topic: str) -> int:
        """NoSuchTopic where it is not there and is not made."""
        known = self.at_once(topic)
        if known is not None:
            return known
        missing = self._found.get(topic)
        if missing is not None and not missing[0] and time.monotonic() < missing[1]:
            raise NoSuchTopic(topic, ())
        try:
            count = await self._ask(lambda cluster: partition_count(cluster, topic))
        except NoSuchTopic:
            self._found[topic] = (0, time.monotonic() + MISSING_KEPT_S)
            raise
        self._found[topic] = (count, time.monotonic() + KEPT_S)
        self._found.move_to_end(topic)
        while len(self._found) > MAX_KEPT:
            self._found.popitem(last=False)
        return count

    async def again(self, topic: str) -> int:
        """As it is now."""
        self.forget(topic)
        return await self.partitions(topic)

    def forget(self, topic: str) -> None:
        self._found.pop(topic, None)


def partition_count(cluster: Cluster, topic: str) -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)

    def ask(client: ClusterClient) -> int:
        patience, looks = Patience(LEADER_PATIENCE_S), 0
        while True:
            looks += 1
            (found,) = client.ask(request, MetadataResponse).topics
            if not found.error_code:
                return len(found.partitions)
            if found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                raise NoSuchTopic(topic, ())
            may_come = found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and looks < LOOKS
            if not (may_come or found.error_code == ErrorCode.LEADER_NOT_AVAILABLE) or not patience.pause():
                if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise NoSuchTopic(topic, ())
                raise refused(found.error_code)

    return cluster.ask(ask)
