"""Records to the documents of collections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bson.errors import BSONError
from pymongo import DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateOne
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    OperationFailure,
    PyMongoError,
)

import penstock
from penstock.connect.connectors.mongodb import mongodb_settings as names
from penstock.connect.connectors.mongodb.documents import document_of, plain
from penstock.connect.errors import ConnectError, DataError, Hopeless, InvalidConfig, RetriableError
from penstock.connect.interface import Config, SinkConnector, SinkTask, TopicPlace
from penstock.connect.records import SinkRecord

_LOGIN: Final = (13, 18)
_TIMEOUTS: Final[dict[str, Any]] = {"serverSelectionTimeoutMS": 5000, "connectTimeoutMS": 5000}
_ID: Final = "_id"
DUPLICATE: Final = 11000


class MongoSinkTask(SinkTask):
    version = penstock.__version__
    settings = names.SINK_SETTINGS
    java_names = ("com.mongodb.kafka.connect.sink.MongoSinkTask",)

    def start(self) -> None:
        values = self.values
        self._client = client_of(values["connection.uri"])
        self._writes = names.simple(values["writemodel.strategy"])
        self._ids = names.simple(values["document.id.strategy"])
        self._fields = values["document.id.strategy.partial.value.projection.list"]
        self._retries_left: int = values["max.num.retries"]

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        try:
            self._write(records)
        except RetriableError as error:
            if self._retries_left <= 0:
                self._retries_left = self.values["max.num.retries"]
                raise ConnectError(f"{error}; that was the last of max.num.retries attempts") from error
            self._retries_left -= 1
            self.context.retry_after(self.values["retries.defer.timeout"] / 1000)
            raise
        self._retries_left = self.values["max.num.retries"]

    def _write(self, records: Sequence[SinkRecord]) -> None:
        refused: list[tuple[SinkRecord, BaseException]] = []
        by_collection: dict[str, list[tuple[SinkRecord, Any]]] = {}
        for record in records:
            try:
                made = self._model(record)
            except (DataError, BSONError) as error:
                refused.append((record, error))
                continue
            if made is not None:
                by_collection.setdefault(self.values["collection"] or record.topic, []).append((record, made))
        most = self.values["max.batch.size"] or len(records)
        for collection, writes in by_collection.items():
            for start in range(0, len(writes), most):
                refused.extend(self._send(collection, writes[start : start + most]))
        if self.values["mongo.errors.tolerance"].lower() != "all":
            for record, why in refused:
                self.context.report(record, why)

    def _send(
        self, collection: str, writes: list[tuple[SinkRecord, Any]]
    ) -> list[tuple[SinkRecord, BaseException]]:
        """What MongoDB will not have; what is behind it is written all the same."""
        refused: list[tuple[SinkRecord, BaseException]] = []
        ordered = self.values["bulk.write.ordered"]
        target = self._client[self.values["database"]][collection]
        while writes:
            try:
                with failures():
                    target.bulk_write([write for _, write in writes], ordered=ordered)
                return refused
            except BulkWriteError as error:
                wrong = error.details.get("writeErrors", [])
                if not wrong:
                    raise RetriableError(f"MongoDB has not confirmed the writes: {error.details}") from error
                for each in wrong:
                    # It was written by an attempt before this one, or by another task.
                    if each.get("code") != DUPLICATE or self._ids not in (
                        names.META,
                        names.FULL_KEY,
                        names.BSON_ID,
                    ):
                        refused.append(
                            (writes[each["index"]][0], DataError(f"{collection}: {each.get('errmsg')}"))
                        )
                writes = writes[wrong[0]["index"] + 1 :] if ordered else []
            except (OverflowError, BSONError) as error:
                if len(writes) == 1:
                    return [*refused, (writes[0][0], DataError(f"{collection}: {error}"))]
                middle = len(writes) // 2
                return (
                    refused
                    + self._send(collection, writes[:middle])
                    + self._send(collection, writes[middle:])
                )
        return refused

    def _model(self, record: SinkRecord) -> Any:
        """None: nothing is to be done for it."""
        if record.value is None:
            if self.values["delete.on.null.values"] or self._writes == names.DELETE:
                return DeleteOne({_ID: self._id(record, {})})
            return None
        if self._writes == names.DELETE:
            return DeleteOne({_ID: self._id(record, document_of(record.value))})
        document = document_of(record.value)
        if self._writes == names.REPLACE_BY_KEY:
            found = {name: document.get(name) for name in self._fields}
            document.pop(_ID, None)
            return ReplaceOne(found, document, upsert=True)
        if self._ids != names.BSON_ID and (
            _ID not in document
            or (self._ids != names.IN_VALUE and self.values["document.id.strategy.overwrite.existing"])
        ):
            document[_ID] = self._id(record, document)
        if self._writes == names.INSERT or _ID not in document:
            return InsertOne(document)
        key = {_ID: document[_ID]}
        if self._writes == names.UPDATE:
            return UpdateOne(
                key, {"$set": {name: one for name, one in document.items() if name != _ID}}, upsert=True
            )
        return ReplaceOne(key, document, upsert=True)

    def _id(self, record: SinkRecord, document: Mapping[str, Any]) -> Any:
        if self._ids == names.META:
            return "#".join(map(str, record.original))
        if self._ids == names.PARTIAL_VALUE:
            return {name: document.get(name) for name in self._fields}
        if self._ids == names.IN_VALUE:
            if _ID not in document:
                raise DataError("the value has no _id")
            return document[_ID]
        key = plain(record.key)
        if key is None:
            raise DataError("a record without a key has no document's _id")
        if self._ids == names.IN_KEY:
            if not isinstance(key, dict) or _ID not in key:
                raise DataError("the key has no _id")
            return key[_ID]
        return key

    def flush(self, offsets: Mapping[TopicPlace, int]) -> None:
        """All is written when `put` returns."""

    def stop(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()


class failures:
    """The driver's errors as a task's; those of a bulk go on as they are."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, BulkWriteError) or not isinstance(error, PyMongoError):
            return
        if isinstance(error, OperationFailure) and error.code in _LOGIN:
            raise Hopeless(f"MongoDB refuses the login: {error}") from error
        if isinstance(error, DocumentTooLarge):
            raise DataError(str(error)) from error
        again = isinstance(error, ConnectionFailure) or error.has_error_label("RetryableWriteError")
        raise (RetriableError if again else ConnectError)(f"MongoDB: {error}") from error


def client_of(uri: str) -> MongoClient[dict[str, Any]]:
    """InvalidConfig."""
    try:
        own = {name: value for name, value in _TIMEOUTS.items() if name.lower() not in uri.lower()}
        return MongoClient(uri, tz_aware=True, **own)
    except (ConfigurationError, ValueError) as error:
        raise InvalidConfig(f"connection.uri cannot be used: {error}") from None


class MongoSink(SinkConnector):
    version = penstock.__version__
    settings = names.SINK_SETTINGS
    java_names = ("com.mongodb.kafka.connect.MongoSinkConnector",)
    task_class = MongoSinkTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            return names.sink_mistakes_of(names.SINK_SETTINGS.parse(given))
        except InvalidConfig:
            return {}  # the table has told it

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [dict(self.given) for _ in range(max_tasks)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[TopicPlace, int | None]) -> bool:
        return True
