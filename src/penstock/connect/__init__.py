"""Connect: records between topics and other systems, by connectors that are configured and not programmed.

A user of Kafka Connect keeps his REST calls, worker properties, configurations of connectors, transforms and internal topics;
connectors are Python classes.

    connector (in the server) → task configs → long tasks (`spark/tasks`), each one:
      source   poll → transforms → converters → producer, offsets of the source in the same transaction
      sink     consumer → converters → transforms → put → flush → offsets of the group

The rooms: `data` ◇ (schemas, structs), `settings` ◇ and `interface` ◇ (what one writes to have a connector), `converters` ◇,
`transforms` ◇ (with predicates), `plugins` (classes by name), `tasks` (what runs in a long task), `state` ◇ (what the topic of
configs says), `topics` (the three internal topics), `running` (connectors, jobs, who leads), `server` (the REST API),
`connectors` (those that come along).

Promises: a source's record is written at least once, or exactly once where the source can say where it was; a sink's record
is put at least once, and exactly once where the target can keep its offset with it. A task that fails is started again.
"""

from penstock.connect.errors import ConnectError, DataError, Hopeless, InvalidConfig, RetriableError
from penstock.connect.interface import (
    Converter,
    HeaderConverter,
    Predicate,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
    Transformation,
)
from penstock.connect.records import Header, SinkRecord, SourceRecord
from penstock.connect.settings import Kind, Setting, Settings

__all__ = [
    "SourceConnector", "SourceTask", "SinkConnector", "SinkTask", "SourceRecord", "SinkRecord", "Header",
    "Converter", "HeaderConverter", "Transformation", "Predicate", "Setting", "Settings", "Kind",
    "ConnectError", "RetriableError", "DataError", "Hopeless", "InvalidConfig",
]  # fmt: skip
