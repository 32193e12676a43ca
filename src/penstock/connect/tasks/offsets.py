"""Where sources keep how far they have come: the topic of offsets, or a file of a standalone worker.

In the topic, as Kafka Connect has it: the key is `["connector",{source partition}]` and the value `{source offset}`, or null
for none any more; both are JSON without spaces, in the order in which the connector wrote the fields.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.client.errors import BadOption, ReadFailed
from penstock.client.librdkafka_calls import RETRIABLE_CODES
from penstock.client.options import client_options
from penstock.client.properties import SECURITY_NAMES
from penstock.client.topics import EARLIEST, LATEST, Client
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.tasks.clients import BOOTSTRAP, at_hand, make_consumer

log = logging.getLogger("penstock.connect")

Send = Callable[[str, bytes, bytes | None], None]
"""Topic, key, value: to whom writes the source's records."""
PLAIN_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)  # one that JSON has no other spelling for
READ_UNCOMMITTED: Final = 0
AT_ONCE: Final = 5000
WAIT_S: Final = 0.2
STUCK_S: Final = 90.0  # longer than a transaction that somebody left open


class OffsetStore(Protocol):
    def load(self, connector: str) -> Mapping[str, dict[str, Any]]:
        """By `partition_text`, those that are not null."""

    def write(self, connector: str, offsets: Mapping[str, str | None], send: Send) -> None:
        """By `partition_text`, as `place_text`; None takes an offset away. What goes to a topic is given to `send`, and kept when
        that is delivered."""

    def spell(self, connector: str, partition: Mapping[str, Any]) -> str:
        """`partition_text`. One that is new to the topic is written there in the order of its fields."""


def partition_text(partition: Mapping[str, Any]) -> str:
    """The same for the same partition, whatever the order of its fields."""
    return json.dumps(partition, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def place_text(place: Any) -> str:
    """As it is written. ConnectError for what is not JSON."""
    try:
        return json.dumps(place, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConnectError(f"a source's partitions and offsets must be JSON objects: {error}") from None


class TopicOffsets:
    """`properties` are a consumer's, in Kafka's names, and `settings` the same for librdkafka. Use from one thread. `check` is
    called while something is waited for, and raises to end that."""

    def __init__(
        self,
        topic: str,
        properties: Mapping[str, str],
        settings: Mapping[str, Any],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.topic, self._check = topic, check
        self._properties, self._settings = properties, settings
        self._needle = b""
        self._keys: dict[tuple[str, str], bytes] = {}
        """As they are in the topic: a Java worker may have written the fields in another order."""

    def load(self, connector: str) -> dict[str, dict[str, Any]]:
        """As far as it is written now. What an open transaction of somebody else stands before is waited for."""
        found: dict[str, dict[str, Any]] = {}
        bounds = self._bounds()
        # Most records are of others, and need not be parsed.
        self._needle = connector.encode() if PLAIN_NAME.fullmatch(connector) else b""
        if bounds:
            self._read(bounds, connector, found)
        return found

    def write(self, connector: str, offsets: Mapping[str, str | None], send: Send) -> None:
        for partition, place in offsets.items():
            key = self._keys.get((connector, partition))
            if key is None:
                key = f"[{json.dumps(connector, ensure_ascii=False)},{partition}]".encode()
            send(self.topic, key, None if place is None else place.encode())

    def spell(self, connector: str, partition: Mapping[str, Any]) -> str:
        """`partition_text`; where the topic does not have it yet, it is written in the order of its fields."""
        text = partition_text(partition)
        if (connector, text) not in self._keys:
            self._keys[connector, text] = place_text([connector, dict(partition)]).encode()
        return text

    def _bounds(self) -> dict[int, tuple[int, int]]:
        """First and end offset of the partitions that hold something."""
        security = {name: value for name, value in self._properties.items() if name in SECURITY_NAMES}
        try:
            client = Client(client_options(self._properties[BOOTSTRAP], security), is_known=True)
        except BadOption as error:
            raise InvalidConfig(str(error)) from None
        try:
            topic = client.topic(self.topic)
            ask = dict.fromkeys(topic.leaders, LATEST)
            ends = client.offsets(topic, ask, isolation_level=READ_UNCOMMITTED)
            starts = client.offsets(topic, dict.fromkeys(ask, EARLIEST), isolation_level=READ_UNCOMMITTED)
        except ReadFailed as error:
            raise ConnectError(f"the topic of offsets {self.topic} cannot be read: {error}") from error
        finally:
            client.close()
        return {
            number: (starts[number] or 0, end or 0)
            for number, end in ends.items()
            if (end or 0) > (starts[number] or 0)
        }

    def _read(
        self, bounds: Mapping[int, tuple[int, int]], connector: str, found: dict[str, dict[str, Any]]
    ) -> None:
        consumer = make_consumer(
            {
                **self._settings,
                "group.id": "penstock-connect-offsets",  # needed by librdkafka, and used by nobody
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        try:
            consumer.assign(
                [TopicPartition(self.topic, number, start) for number, (start, _) in bounds.items()]
            )
            left = dict(bounds)
            deadline_s = time.monotonic() + STUCK_S
            while left:
                self._check()
                messages = at_hand(consumer, AT_ONCE, WAIT_S)
                for message in messages:
                    number, offset = message.partition() or 0, message.offset() or 0
                    error = message.error()
                    if error is None:
                        self._take(connector, message.key(), message.value(), found)
                        offset += 1
                    elif error.code() != KafkaError._PARTITION_EOF:
                        if error.fatal() or error.code() not in RETRIABLE_CODES:
                            raise ConnectError(f"{self.topic} cannot be read: {error.str()}")
                        continue
                    # Marks of transactions and what they took back have offsets, and are not given.
                    if number in left and offset >= left[number][1]:
                        del left[number]
                if not messages and time.monotonic() > deadline_s:
                    raise ConnectError(f"{self.topic} cannot be read to its end: the cluster does not answer")
        except KafkaException as error:
            raise ConnectError(f"{self.topic} cannot be read: {error.args[0].str()}") from error
        finally:
            consumer.close()

    def _take(
        self, connector: str, key: bytes | None, value: bytes | None, found: dict[str, dict[str, Any]]
    ) -> None:
        if key is None or self._needle not in key:
            return
        try:
            name, partition = json.loads(key)
            place = None if value is None else json.loads(value)
        except ValueError:
            return  # nobody's offset
        if name != connector or not isinstance(partition, dict):
            return
        text = partition_text(partition)
        self._keys[connector, text] = key
        if isinstance(place, dict):
            found[text] = place
        else:
            found.pop(text, None)


class BothOffsets:
    """A connector with a topic of its own (`offsets.storage.topic`) goes on from the worker's where its own says nothing yet."""

    def __init__(self, own: TopicOffsets, worker: OffsetStore) -> None:
        self._own, self._worker = own, worker
        self.topic = own.topic

    def load(self, connector: str) -> Mapping[str, dict[str, Any]]:
        return {**self._worker.load(connector), **self._own.load(connector)}

    def write(self, connector: str, offsets: Mapping[str, str | None], send: Send) -> None:
        self._own.write(connector, offsets, send)

    def spell(self, connector: str, partition: Mapping[str, Any]) -> str:
        return self._own.spell(connector, partition)
