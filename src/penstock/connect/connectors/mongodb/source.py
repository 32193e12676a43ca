"""Documents and their changes to topics.

The source partition is {"ns": where it looks}, as MongoDB's connector has it, and the source offset {"_id": resume token}. While
what was there at first is copied, the offset is {"_id": token of the stream's beginning, "copy": true}: a copy that was cut short
begins again, and the changes behind it are none lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bson import json_util
from bson.timestamp import Timestamp

import penstock
from penstock.connect.connectors.mongodb import mongodb_settings as names
from penstock.connect.connectors.mongodb.sink import client_of, failures
from penstock.connect.data.schema import STRING
from penstock.connect.errors import InvalidConfig
from penstock.connect.interface import Config, SourceConnector, SourceTask
from penstock.connect.records import SourceRecord

COPY: Final = "copy"
_ID: Final = "_id"
_SYSTEM: Final = ("admin", "local", "config")


class MongoSourceTask(SourceTask):
    version = penstock.__version__
    settings = names.SOURCE_SETTINGS
    java_names = ("com.mongodb.kafka.connect.source.MongoSourceTask",)

    def start(self) -> None:
        values = self.values
        self._client = client_of(values["connection.uri"])
        self._pipeline = json_util.loads(values["pipeline"] or "[]")
        self._topics: dict[str, str] = json.loads(values["topic.namespace.map"] or "{}")
        self._json = json_util.RELAXED_JSON_OPTIONS
        if names.simple(values["output.json.formatter"]) in ("ExtendedJson", "DefaultJson"):
            self._json = json_util.CANONICAL_JSON_OPTIONS.with_options(
                json_mode=json_util.JSONMode.LEGACY if names.simple(values["output.json.formatter"]) == "DefaultJson" else
                json_util.JSONMode.CANONICAL
            )  # fmt: skip
        place = ".".join(word for word in (values["database"], values["collection"]) if word)
        self._partition = {"ns": values["offset.partition.name"] or f"mongodb/{place}"}
        kept = self.context.offset(self._partition)
        self._stream: Any = None
        self._copying: Iterator[tuple[str, Any]] | None = None
        self._copied = bool(kept) and not (kept or {}).get(COPY)
        self._token: Any = json_util.loads(kept[_ID]) if kept else None

    def poll(self) -> Sequence[SourceRecord] | None:
        with failures():
            if self._stream is None:
                self._open()
            found = [] if self._copying is None else self._copies()
            return found or self._changes()

    def _target(self) -> Any:
        values = self.values
        if not values["database"]:
            return self._client
        database = self._client[values["database"]]
        return database[values["collection"]] if values["collection"] else database

    def _open(self) -> None:
        values = self.values
        more: dict[str, Any] = {}
        if self._token is not None:
            more["resume_after"] = self._token
        elif values["startup.mode"].lower() == names.TIMESTAMP:
            more["start_at_operation_time"] = Timestamp(
                int(values["startup.mode.timestamp.start.at.operation.time"]), 1
            )
        if values["change.stream.full.document"] or values["publish.full.document.only"]:
            more["full_document"] = values["change.stream.full.document"] or "updateLookup"
        self._stream = self._target().watch(
            self._pipeline,
            max_await_time_ms=values["poll.await.time.ms"],
            batch_size=values["poll.max.batch.size"],
            **more,
        )
        if values["startup.mode"].lower() == names.COPY and not self._copied:
            self._token = self._stream.resume_token or self._token
            self._copying = self._existing()

    def _existing(self) -> Iterator[tuple[str, Any]]:
        """What is there when the stream has begun."""
        values = self.values
        databases = [values["database"]] if values["database"] else self._client.list_database_names()
        for database in databases:
            if database in _SYSTEM:
                continue
            collections = (
                [values["collection"]]
                if values["collection"]
                else self._client[database].list_collection_names()
            )
            for collection in sorted(collections):
                if not collection.startswith("system."):
                    for document in self._client[database][collection].find():
                        yield f"{database}.{collection}", document

    def _copies(self) -> list[SourceRecord]:
        assert self._copying is not None
        records = []
        offset = {_ID: self._text(self._token), COPY: True} if self._token is not None else None
        for namespace, document in self._copying:
            database, _, collection = namespace.partition(".")
            key = {_ID: document[_ID]}
            event = {
                _ID: {**key, "copyingData": True}, "operationType": "insert",
                "ns": {"db": database, "coll": collection}, "documentKey": key, "fullDocument": document,
            }  # fmt: skip
            records += self._records(event, key, offset)
            if len(records) >= self.values["poll.max.batch.size"]:
                return records
        self._copying, self._copied = None, True
        return records

    def _changes(self) -> list[SourceRecord]:
        records: list[SourceRecord] = []
        while len(records) < self.values["poll.max.batch.size"] and not self.context.is_stopping():
            event = self._stream.try_next()
            if event is None:
                break
            self._token = event[_ID]
            records += self._records(
                event,
                {_ID: event.get("documentKey", {}).get(_ID, event[_ID])},
                {_ID: self._text(self._token)},
            )
        return records

    def _records(
        self, event: Mapping[str, Any], key: Any, offset: dict[str, Any] | None
    ) -> list[SourceRecord]:
        value: Any = event
        if self.values["publish.full.document.only"]:
            value = event.get("fullDocument")
            if value is None and not self.values["publish.full.document.only.tombstone.on.delete"]:
                return []
        names_of = event.get("ns") or {"db": self.values["database"], "coll": self.values["collection"]}
        text = None if value is None else self._text(value)
        return [
            SourceRecord(
                self._partition, offset, self._topic(names_of.get("db", ""), names_of.get("coll", "")), text,
                value_schema=STRING.optional() if text is None else STRING, key=self._text(key), key_schema=STRING,
            )
        ]  # fmt: skip

    def _topic(self, database: str, collection: str) -> str:
        separator = self.values["topic.separator"]
        mapped = self._topics.get(f"{database}.{collection}")
        if mapped is None and database in self._topics:
            mapped = separator.join((self._topics[database], collection))
        if mapped is None:
            mapped = self._topics.get("*") or separator.join(word for word in (database, collection) if word)
        found: str = separator.join(
            word for word in (self.values["topic.prefix"], mapped, self.values["topic.suffix"]) if word
        )
        return found

    def _text(self, value: Any) -> str:
        text: str = json_util.dumps(value, json_options=self._json)
        return text

    def stop(self) -> None:
        if hasattr(self, "_client"):
            if self._stream is not None:
                self._stream.close()
            self._client.close()


class MongoSource(SourceConnector):
    version = penstock.__version__
    settings = names.SOURCE_SETTINGS
    java_names = ("com.mongodb.kafka.connect.MongoSourceConnector",)
    task_class = MongoSourceTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            return names.source_mistakes_of(names.SOURCE_SETTINGS.parse(given))
        except InvalidConfig:
            return {}  # the table has told it

    def task_configs(self, max_tasks: int) -> list[Config]:
        """One: a stream has one order."""
        return [dict(self.given)]
