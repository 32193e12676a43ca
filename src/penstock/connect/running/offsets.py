"""How far connectors are: told, altered, and reset. Of sources in the topic (or the file) of offsets, of sinks in their group."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from penstock.admin.groups.requests import GroupRequests, open_groups
from penstock.client.errors import Refused
from penstock.connect.errors import ConnectError
from penstock.connect.interface import SinkConnector, SourceConnector, TopicPlace
from penstock.connect.plugins import SINK, SOURCE
from penstock.connect.running.desk import Desk
from penstock.connect.running.refusals import bad_request, failed
from penstock.connect.state.configs import Config
from penstock.connect.tasks.clients import CONSUMER, PRODUCER, make_producer, properties_of, settings_of
from penstock.connect.tasks.fencing import fence
from penstock.connect.tasks.offset_file import FileOffsets
from penstock.connect.tasks.offsets import BothOffsets, OffsetStore, TopicOffsets, place_text
from penstock.connect.tasks.source_clients import worker_store
from penstock.connect.topics.book import connection_of
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
DONE: Final = "The offsets for this connector have been {} successfully"
OURS_DONE: Final = (
    "The Connect framework-managed offsets for this connector have been {verb} successfully. However, if this connector manages "
    "offsets externally, they will need to be manually {verb} in the system that the connector uses."
)
NONE_GIVEN: Final = "Partitions / offsets need to be provided for an alter offsets request"
WRITE_S: Final = 30.0
_NOBODY: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class SourcePartition(dict[str, Any]):
    """A JSON object that can be a key of a mapping."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True))


class OffsetKeeping:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def told(self, name: str, config: Config) -> dict[str, Any]:
        config = self._desk.providers.resolved(config)
        if self._desk.kind(config) == SOURCE:
            found = self._store(config).load(name)
            return {
                "offsets": [{"partition": json.loads(text), "offset": place} for text, place in found.items()]
            }
        with open_groups(self._connection(config)) as groups:
            committed = _committed(groups, group_of(name, config))
        return {
            "offsets": [
                {"partition": {PARTITION: place.partition, TOPIC: place.topic}, "offset": {OFFSET: offset}}
                for place, offset in sorted(committed.items())
            ]
        }

    def alter(self, name: str, config: Config, given: Any) -> str:
        """The sentence that is answered. Refusal; ConnectError, as the connector says it."""
        config = self._desk.providers.resolved(config)
        if given is None:
            raise failed("The body must have offsets.")
        entries = given.get("offsets") if isinstance(given, dict) else None
        if not isinstance(entries, list) or not entries:
            raise bad_request(NONE_GIVEN)
        if self._desk.kind(config) == SOURCE:
            return self._alter_source(name, config, _source_entries(entries), "altered")
        return self._alter_sink(name, config, _sink_entries(entries))

    def reset(self, name: str, config: Config) -> str:
        config = self._desk.providers.resolved(config)
        if self._desk.kind(config) == SOURCE:
            known = self._store(config).load(name)
            nothing = {SourcePartition(json.loads(text)): None for text in known}
            return self._alter_source(name, config, nothing, "reset")
        return self._reset_sink(name, config)

    # Sources.

    def _alter_source(
        self,
        name: str,
        config: Config,
        offsets: Mapping[SourcePartition, Mapping[str, Any] | None],
        verb: str,
    ) -> str:
        """Zombies first: what they have open would come behind it."""
        worker, desk = self._desk.options.worker, self._desk
        connector = self._connector(config, SOURCE)
        assert isinstance(connector, SourceConnector)
        does_all = connector.alter_offsets(config, offsets)
        if worker.is_exactly_once and not desk.options.is_standalone:
            fence(worker, name, config, range(max(1, desk.book.configs.fenced_tasks.get(name, 0))))
        store = self._store(config)
        store.load(name)
        texts = {
            store.spell(name, partition): None if place is None else place_text(dict(place))
            for partition, place in offsets.items()
        }
        if isinstance(store, FileOffsets):
            store.write(name, texts, _unsent)
        else:
            self._send(store, name, texts)
        return _sentence(does_all, verb)

    def _send(self, store: OffsetStore, name: str, texts: Mapping[str, str | None]) -> None:
        producer = make_producer({**settings_of(self._desk.options.worker, {}, PRODUCER), "linger.ms": 0})
        failures: list[str] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(error.str())

        def send(topic: str, key: bytes, value: bytes | None) -> None:
            producer.produce(topic, key=key, value=value, on_delivery=delivered)

        store.write(name, texts, send)
        if producer.flush(WRITE_S) or failures:
            raise failed(f"Offsets could not be written: {failures[0] if failures else 'no answer in time'}")

    def _store(self, config: Config) -> OffsetStore:
        worker = self._desk.options.worker
        own = config.get("offsets.storage.topic")
        if not own or self._desk.options.is_standalone:
            return worker_store(worker)
        store = TopicOffsets(own, properties_of(worker, {}, CONSUMER), settings_of(worker, {}, CONSUMER))
        return BothOffsets(store, worker_store(worker)) if own != worker.offsets_topic else store

    # Sinks.

    def _alter_sink(self, name: str, config: Config, offsets: Mapping[TopicPlace, int | None]) -> str:
        connector = self._connector(config, SINK)
        assert isinstance(connector, SinkConnector)
        does_all = connector.alter_offsets(config, offsets)
        group = group_of(name, config)
        kept = {TopicPartition(*place): offset for place, offset in offsets.items() if offset is not None}
        gone = [TopicPartition(*place) for place, offset in offsets.items() if offset is None]
        with open_groups(self._connection(config)) as groups:
            try:
                if kept:
                    groups.commit(group, kept)
                if gone:
                    deleted = groups.delete_offsets(group, gone)
                    errors = [deleted.error, *deleted.partitions.values()]
                    for error in errors:
                        if error is not None and error.code not in _NOBODY:
                            raise error
            except Refused as error:
                raise _busy(name, "alter", error) from None
        return _sentence(does_all, "altered")

    def _reset_sink(self, name: str, config: Config) -> str:
        connector = self._connector(config, SINK)
        assert isinstance(connector, SinkConnector)
        group = group_of(name, config)
        with open_groups(self._connection(config)) as groups:
            known: dict[TopicPlace, int | None] = {
                (place.topic, place.partition): None for place in _committed(groups, group)
            }
            does_all = connector.alter_offsets(config, known)
            error = groups.delete([group])[group]
            if error is not None and error.code not in _NOBODY:
                raise _busy(name, "reset", error)
        return _sentence(does_all, "reset")

    def _connector(self, config: Config, kind: str) -> Any:
        made = cast(Any, self._desk.plugins.load(config["connector.class"], kind))()
        made.configure(config)
        return made

    def _connection(self, config: Config) -> Any:
        """Where a sink's group is."""
        worker = self._desk.options.worker
        from penstock.client.clients import Connection

        properties = properties_of(worker, config, CONSUMER)
        if properties["bootstrap.servers"] == worker.bootstrap:
            return connection_of(worker)
        from penstock.client.properties import SECURITY_NAMES

        return Connection(
            properties["bootstrap.servers"],
            {name: text for name, text in properties.items() if name in SECURITY_NAMES},
        )


def group_of(name: str, config: Config) -> str:
    return config.get("consumer.override.group.id") or f"connect-{name}"


def _committed(groups: GroupRequests, group: str) -> dict[TopicPartition, int]:
    try:
        return {place: one.offset for place, one in groups.committed(group).items()}
    except Refused as error:
        if error.code in _NOBODY:
            return {}
        raise


def _unsent(topic: str, key: bytes, value: bytes | None) -> None:
    raise AssertionError("a file of offsets sends nothing")


def _busy(name: str, verb: str, error: Refused) -> Exception:
    return bad_request(
        f"Failed to {verb} consumer group offsets for connector {name}, perhaps because its tasks haven't stopped completely "
        f"yet or the connector was resumed before the request could be completed. If the connector is in a stopped state, this "
        f"operation can be safely retried. ({error})"
    )


def _sentence(does_all: bool, verb: str) -> str:
    return DONE.format(verb) if does_all else OURS_DONE.format(verb=verb)


def _source_entries(entries: Sequence[Any]) -> dict[SourcePartition, Mapping[str, Any] | None]:
    found: dict[SourcePartition, Mapping[str, Any] | None] = {}
    for entry in entries:
        partition = entry.get("partition") if isinstance(entry, dict) else None
        if not isinstance(partition, dict):
            raise ConnectError("Partition objects cannot be null")
        offset = entry.get("offset")
        if offset is not None and not isinstance(offset, dict):
            raise bad_request("An offset must be an object or null")
        found[SourcePartition(partition)] = offset
    return found


def _sink_entries(entries: Sequence[Any]) -> dict[TopicPlace, int | None]:
    found: dict[TopicPlace, int | None] = {}
    for entry in entries:
        partition = entry.get("partition") if isinstance(entry, dict) else None
        if not isinstance(partition, dict):
            raise bad_request("The partition for a sink connector offset cannot be null or missing")
        if TOPIC not in partition or PARTITION not in partition:
            raise bad_request(
                f"The partition for a sink connector offset must contain the keys '{TOPIC}' and '{PARTITION}'"
            )
        number = _number(partition[PARTITION])
        if number is None:
            raise bad_request(
                f"Failed to parse the following Kafka partition value in the provided offsets: '{partition[PARTITION]}'. "
                "Partition values for sink connectors need to be integers."
            )
        found[str(partition[TOPIC]), number] = _sink_offset(entry.get("offset"))
    return found


def _sink_offset(offset: Any) -> int | None:
    if offset is None:
        return None
    if not isinstance(offset, dict) or OFFSET not in offset:
        raise bad_request(
            f"The offset for a sink connector should either be null or contain the key '{OFFSET}'"
        )
    number = _number(offset[OFFSET])
    if number is None:
        raise bad_request(
            f"Failed to parse the following Kafka offset value in the provided offsets: '{offset[OFFSET]}'. Offset values for "
            "sink connectors need to be integers."
        )
    return number


def _number(value: Any) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None
