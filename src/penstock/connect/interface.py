"""What one writes to have a connector: a class for the connector, one for its tasks, and a table of settings.

A connector decides how many tasks there are and what each gets; a task moves records. Tasks run in a process of their own, one
thread each; all calls of a task come from that thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from penstock.connect.data.schema import Schema
from penstock.connect.errors import ConnectError
from penstock.connect.records import ConnectRecord, Header, SinkRecord, SourceRecord
from penstock.connect.settings import NO_SETTINGS, Settings

Config = dict[str, str]
SourcePlace = Mapping[str, Any]
"""A source partition or a source offset: a JSON object."""
TopicPlace = tuple[str, int]


class Configured:
    """All that is named in a configuration by its class. `configure` gets the parsed values of its settings, and `given` has
    all texts, for what the table cannot say (`Settings.parse` is not asked about these)."""

    version: ClassVar[str] = "0"
    settings: ClassVar[Settings] = NO_SETTINGS
    java_names: ClassVar[tuple[str, ...]] = ()
    """The classes of Kafka Connect, and of others, whose configurations this one takes."""

    given: Mapping[str, str]
    values: Mapping[str, Any]

    def configure(self, given: Mapping[str, str]) -> None:
        """InvalidConfig."""
        self.given = given
        self.values = self.settings.parse(given)


class Connector(Configured):
    """`given` and `values` are set before `start`. It runs in the server, so its calls should be short."""

    task_class: ClassVar[type[SourceTask] | type[SinkTask]]
    context: ConnectorContext

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """Mistakes that the table cannot tell, by the name of the setting: asked before a configuration is taken."""
        return {}

    def start(self) -> None:
        """ConnectError when it cannot work."""

    def task_configs(self, max_tasks: int) -> list[Config]:
        """A configuration for each task, `max_tasks` at most; what is in `given` comes to each task besides."""
        return [dict(self.given)]

    def stop(self) -> None:
        pass


class ConnectorContext(Protocol):
    def request_reconfiguration(self) -> None:
        """The tasks should be other ones: `task_configs` is asked again."""

    def fail(self, error: BaseException) -> None:
        """The connector cannot go on."""


class SourceConnector(Connector):
    task_class: ClassVar[type[SourceTask]]

    def exactly_once_support(self, given: Mapping[str, str]) -> bool | None:
        """Whether records are read again exactly from the offsets that were kept. None: it does not say."""
        return None

    def can_define_transactions(self, given: Mapping[str, str]) -> bool:
        """With `transaction.boundary=connector`."""
        return False

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[Any, SourcePlace | None]) -> bool:
        """Asked before offsets are changed by hand; ConnectError refuses. True: it has done its part in the source itself."""
        return False


class SinkConnector(Connector):
    task_class: ClassVar[type[SinkTask]]

    def task_configs(self, max_tasks: int) -> list[Config]:
        """As many as there may be: they share the partitions of the topics as members of a group."""
        return [dict(self.given) for _ in range(max_tasks)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[TopicPlace, int | None]) -> bool:
        return False


class Task(Configured):
    """`configure` is called with the task's configuration, `context` is set, then `start`."""

    log: logging.Logger

    def start(self) -> None:
        """Opens what it needs. ConnectError."""

    def stop(self) -> None:
        """Closes it. Called once, also when it has failed."""


class SourceTask(Task):
    context: SourceTaskContext

    def poll(self) -> Sequence[SourceRecord] | None:
        """What there is, or what comes within a second or so; None or nothing when that is none. RetriableError: asked again."""
        raise NotImplementedError

    def committed(self, record: SourceRecord) -> None:
        """The record is in its topic (or was filtered out)."""

    def commit(self) -> None:
        """All offsets of what was polled so far are kept."""


class SinkTask(Task):
    context: SinkTaskContext

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        """These are its own from now on."""

    def close(self, partitions: Sequence[TopicPlace]) -> None:
        """These go to another task, or all when it stops. What was put of them must be written now."""

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Writes them, or keeps them until `flush`. Called with none from time to time. RetriableError: the same call again."""
        raise NotImplementedError

    def flush(self, offsets: Mapping[TopicPlace, int]) -> None:
        """All that was put must be written now; offsets are the next ones to read."""

    def pre_commit(self, offsets: Mapping[TopicPlace, int]) -> Mapping[TopicPlace, int]:
        """Which offsets may be committed. A sink that commits with its data (exactly once) says its own."""
        self.flush(offsets)
        return offsets


class SourceTaskContext(Protocol):
    connector: str
    task: int

    def offset(self, partition: SourcePlace) -> dict[str, Any] | None:
        """Where the last run ended in this part of the source."""

    def offsets(self, partitions: Iterable[SourcePlace]) -> list[dict[str, Any] | None]: ...

    def is_stopping(self) -> bool:
        """A poll that waits should end."""

    def wait(self, seconds: float) -> None:
        """Returns early when the task is to stop."""

    def commit_transaction(self) -> None:
        """With `transaction.boundary=connector`: after the records of this poll."""

    def report(self, record: SourceRecord, error: BaseException) -> None:
        """A record that cannot be made whole goes where `errors.…` says (the dead letter topic), or fails the task."""


class SinkTaskContext(Protocol):
    connector: str
    task: int

    def assignment(self) -> frozenset[TopicPlace]: ...

    def seek(self, place: TopicPlace, offset: int) -> None:
        """The next `put` begins there."""

    def pause(self, *places: TopicPlace) -> None: ...

    def resume(self, *places: TopicPlace) -> None: ...

    def retry_after(self, seconds: float) -> None:
        """How long to wait after the next RetriableError."""

    def request_commit(self) -> None:
        """Offsets should be committed now."""

    def report(self, record: SinkRecord, error: BaseException) -> None:
        """A record that the sink itself refuses goes where `errors.…` says (the dead letter topic), or fails the task."""


class Converter(Configured):
    """Between a value with its schema and the bytes in a topic. `is_key` is set before `configure`."""

    is_key: bool = False

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """DataError."""
        raise NotImplementedError

    def to_value(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """DataError."""
        raise NotImplementedError


class HeaderConverter(Configured):
    def from_header(self, topic: str, header: Header) -> bytes | None:
        raise NotImplementedError

    def to_header(self, topic: str, name: str, data: bytes | None) -> Header:
        raise NotImplementedError


class Transformation(Configured):
    def apply(self, record: Any) -> Any:
        """Another record, the same, or None to leave it out. DataError."""
        raise NotImplementedError

    def close(self) -> None:
        pass


class Predicate(Configured):
    def test(self, record: ConnectRecord) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Plugin(NamedTuple):
    """A class that a configuration may name, under one of its names."""

    name: str
    """As `/connector-plugins` lists it."""
    kind: str
    """source, sink, converter, header_converter, transformation, predicate"""
    version: str
    load: Callable[[], type[Configured]]


__all__ = [
    "Config", "Configured", "Connector", "ConnectorContext", "SourceConnector", "SinkConnector", "Task", "SourceTask", "SinkTask",
    "SourceTaskContext", "SinkTaskContext", "Converter", "HeaderConverter", "Transformation", "Predicate", "Plugin",
    "ConnectError", "SourcePlace", "TopicPlace",
]  # fmt: skip
