"""What the connectors can be configured with, by the names of MongoDB's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, one_of

LATEST, COPY, TIMESTAMP = "latest", "copy_existing", "timestamp"
_STRATEGY: Final = "com.mongodb.kafka.connect.sink.writemodel.strategy."
REPLACE, REPLACE_BY_KEY, INSERT, UPDATE, DELETE = (
    "ReplaceOneDefaultStrategy", "ReplaceOneBusinessKeyStrategy", "InsertOneDefaultStrategy",
    "UpdateOneDefaultStrategy", "DeleteOneDefaultStrategy",
)  # fmt: skip
_IDS: Final = "com.mongodb.kafka.connect.sink.processor.id.strategy."
BSON_ID, FULL_KEY, IN_KEY, IN_VALUE, META, PARTIAL_VALUE = (
    "BsonOidStrategy", "FullKeyStrategy", "ProvidedInKeyStrategy", "ProvidedInValueStrategy", "KafkaMetaDataStrategy",
    "PartialValueStrategy",
)  # fmt: skip

_CONNECTION: Final = Settings(
    Setting("connection.uri", Kind.PASSWORD, "Where MongoDB is: mongodb://…, which may hold a password.",
            default="mongodb://localhost:27017", importance=HIGH),
    Setting("database", Kind.STRING, "The database.", default="", importance=HIGH),
    Setting("collection", Kind.STRING, "The collection. A sink without one takes the topic's name; a source follows all.",
            default="", importance=HIGH),
)  # fmt: skip
SINK_SETTINGS: Final = _CONNECTION | Settings(
    Setting("writemodel.strategy", Kind.STRING, "What a record does to its document: " + ", ".join(
            (REPLACE, REPLACE_BY_KEY, INSERT, UPDATE, DELETE)) + ".", default=_STRATEGY + REPLACE),
    Setting("document.id.strategy", Kind.STRING, "What a document's _id is: " + ", ".join(
            (BSON_ID, FULL_KEY, IN_KEY, IN_VALUE, META, PARTIAL_VALUE)) + ".", default=_IDS + BSON_ID),
    Setting("document.id.strategy.overwrite.existing", Kind.BOOLEAN, "An _id of the value's own is replaced.", default=False,
            importance=LOW),
    Setting("document.id.strategy.partial.value.projection.list", Kind.LIST, "Fields of the value that make the _id, or by which "
            "ReplaceOneBusinessKeyStrategy finds the document.", default=()),
    Setting("delete.on.null.values", Kind.BOOLEAN, "A record without a value deletes the document of its key.", default=False),
    Setting("max.batch.size", Kind.INT, "The most writes at a time; 0: no bound.", default=0, check=at_least(0)),
    Setting("bulk.write.ordered", Kind.BOOLEAN, "Writes are done in order.", default=True),
    Setting("max.num.retries", Kind.INT, "How often a write is made again.", default=3, check=at_least(0), importance=LOW),
    Setting("retries.defer.timeout", Kind.INT, "Milliseconds before that.", default=5000, check=at_least(0), importance=LOW),
    Setting("mongo.errors.tolerance", Kind.STRING, "all: what MongoDB will not have is left out.", default="none",
            check=one_of("none", "all", any_case=True), importance=LOW),
)  # fmt: skip
SOURCE_SETTINGS: Final = _CONNECTION | Settings(
    Setting("pipeline", Kind.STRING, "Stages, as a JSON list, through which changes go.", default="[]"),
    Setting("startup.mode", Kind.STRING, "Where it begins without an offset: latest, copy_existing, timestamp.", default=LATEST,
            check=one_of(LATEST, COPY, TIMESTAMP, any_case=True)),
    Setting("startup.mode.timestamp.start.at.operation.time", Kind.STRING, "For timestamp: seconds since 1970.", default=None),
    Setting("publish.full.document.only", Kind.BOOLEAN, "The value is the document and not the event of the change.",
            default=False),
    Setting("publish.full.document.only.tombstone.on.delete", Kind.BOOLEAN, "With it: a delete is a record without a value.",
            default=False),
    Setting("change.stream.full.document", Kind.STRING, "updateLookup, whenAvailable, required, or nothing.", default=""),
    Setting("topic.prefix", Kind.STRING, "In front of topics' names.", default=""),
    Setting("topic.suffix", Kind.STRING, "Behind them.", default="", importance=LOW),
    Setting("topic.separator", Kind.STRING, "Between their parts.", default=".", importance=LOW),
    Setting("topic.namespace.map", Kind.STRING, 'Topics by namespace, as JSON: {"shop.orders": "orders", "*": "rest"}.',
            default=""),
    Setting("poll.max.batch.size", Kind.INT, "The most changes at a time.", default=1000, check=at_least(1)),
    Setting("poll.await.time.ms", Kind.LONG, "How long is waited for one.", default=1000, check=at_least(1), importance=LOW),
    Setting("output.json.formatter", Kind.STRING, "ExtendedJson or SimplifiedJson.",
            default="com.mongodb.kafka.connect.source.json.formatter.DefaultJson"),
    Setting("output.format.value", Kind.STRING, "json: values are JSON texts.", default="json", check=one_of("json")),
    Setting("output.format.key", Kind.STRING, "json: keys are JSON texts.", default="json", check=one_of("json")),
    Setting("offset.partition.name", Kind.STRING, "Under which name offsets are kept.", default="", importance=LOW),
)  # fmt: skip


def simple(name: str) -> str:
    return name.rpartition(".")[2]


def sink_mistakes_of(values: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    if not values["database"]:
        found["database"] = ["Name the database"]
    strategies = (REPLACE, REPLACE_BY_KEY, INSERT, UPDATE, DELETE)
    if simple(values["writemodel.strategy"]) not in strategies:
        found["writemodel.strategy"] = [
            f"There is no {values['writemodel.strategy']}: there are {', '.join(strategies)}"
        ]
    ids = (BSON_ID, FULL_KEY, IN_KEY, IN_VALUE, META, PARTIAL_VALUE)
    if simple(values["document.id.strategy"]) not in ids:
        found["document.id.strategy"] = [
            f"There is no {values['document.id.strategy']}: there are {', '.join(ids)}"
        ]
    if values["delete.on.null.values"] and simple(values["document.id.strategy"]) not in (FULL_KEY, IN_KEY):
        found["delete.on.null.values"] = [
            f"A document is found by its key then: set document.id.strategy to {FULL_KEY} or {IN_KEY}"
        ]
    wants_fields = simple(values["document.id.strategy"]) == PARTIAL_VALUE or (
        simple(values["writemodel.strategy"]) == REPLACE_BY_KEY
    )
    name = "document.id.strategy.partial.value.projection.list"
    if wants_fields and not values[name]:
        found[name] = ["Name the fields that make the key"]
    return found


def source_mistakes_of(values: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    if values["collection"] and not values["database"]:
        found["database"] = ["A collection is one of a database: name it"]
    for name, kind in (("pipeline", list), ("topic.namespace.map", dict)):
        try:
            if values[name] and not isinstance(json.loads(values[name]), kind):
                raise ValueError
        except ValueError:
            found[name] = [f"This is no JSON {kind.__name__}: {values[name]}"]
    if (
        values["startup.mode"].lower() == TIMESTAMP
        and not (values["startup.mode.timestamp.start.at.operation.time"] or "").isdigit()
    ):
        found["startup.mode.timestamp.start.at.operation.time"] = ["Seconds since 1970 are needed"]
    return found
