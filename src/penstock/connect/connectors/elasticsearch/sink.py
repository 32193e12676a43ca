"""The sink's connector and task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import orjson

import penstock
from penstock.connect.connectors.elasticsearch.client import AGAIN, LINES, Client
from penstock.connect.connectors.elasticsearch.documents import Action, Documents, mappings_of
from penstock.connect.connectors.elasticsearch.sink_settings import FAIL, SETTINGS, WARN, mistakes_of
from penstock.connect.data.schema import Type
from penstock.connect.errors import ConnectError, DataError, InvalidConfig, RetriableError
from penstock.connect.interface import Config, SinkConnector, SinkTask, TopicPlace
from penstock.connect.records import SinkRecord

CONFLICT, NOT_FOUND = 409, 404
_THERE: Final = ("resource_already_exists_exception", "index_already_exists_exception")


class ElasticsearchSinkTask(SinkTask):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("io.confluent.connect.elasticsearch.ElasticsearchSinkTask",)

    def start(self) -> None:
        values = self.values
        self._client = Client(values)
        self._documents = Documents(values)
        self._malformed: str = values["behavior.on.malformed.documents"].lower()
        self._schemaless = frozenset(values["topic.schema.ignore"])
        self._known: set[str] = set()
        self._retries_left: int = values["max.retries"]

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        try:
            self._write(records)
        except RetriableError as error:
            if self._retries_left <= 0:
                self._retries_left = self.values["max.retries"]
                raise ConnectError(f"{error}; that was the last of max.retries attempts") from error
            self._retries_left -= 1
            self.context.retry_after(self.values["retry.backoff.ms"] / 1000)
            raise
        self._retries_left = self.values["max.retries"]

    def _write(self, records: Sequence[SinkRecord]) -> None:
        """What is refused is told when all the rest is written: a put that is made again must not tell it twice."""
        refused: list[tuple[SinkRecord, DataError]] = []
        actions = []
        for record in records:
            try:
                action = self._documents.action(record)
            except DataError as error:
                if not self.values["drop.invalid.message"]:
                    refused.append((record, error))
                continue
            if action is not None:
                self._make_index(action)
                actions.append(action)
        for bulk in self._bulks(actions):
            refused.extend(self._send(bulk))
        for record, why in refused:
            self.context.report(record, why)

    def _bulks(self, actions: Sequence[Action]) -> Iterator[list[Action]]:
        most, most_bytes = self.values["batch.size"], self.values["bulk.size.bytes"]
        bulk: list[Action] = []
        size = 0
        for action in actions:
            if bulk and (len(bulk) >= most or size + len(action.lines) > most_bytes):
                yield bulk
                bulk, size = [], 0
            bulk.append(action)
            size += len(action.lines)
        if bulk:
            yield bulk

    def _send(self, bulk: Sequence[Action]) -> list[tuple[SinkRecord, DataError]]:
        """What the server will not have. RetriableError; ConnectError."""
        answer = self._client.ask("POST", "/_bulk", b"".join([action.lines for action in bulk]), LINES)
        if answer.status == 413 and len(bulk) > 1:
            middle = len(bulk) // 2
            return self._send(bulk[:middle]) + self._send(bulk[middle:])
        if answer.status != 200 or not isinstance(answer.body, dict):
            raise ConnectError(f"the bulk request is answered with {answer.status}: {str(answer.body)[:500]}")
        if not answer.body.get("errors"):
            return []
        refused = []
        for action, item in zip(bulk, answer.body["items"], strict=True):
            ((verb, said),) = item.items()
            status, error = said["status"], said.get("error")
            if status < 300 or status == CONFLICT or (verb == "delete" and status == NOT_FOUND):
                continue  # a conflict: it, or a later one, is there
            text = f"{action.target}: {_reason(error)}"
            if status in AGAIN:
                raise RetriableError(text)
            if status != 400:
                raise ConnectError(f"{status} {text}")
            if self._malformed == FAIL:
                refused.append((action.record, DataError(text)))
            elif self._malformed == WARN:
                self.log.warning("%s is left out: %s", action.record.original, text)
        return refused

    def _make_index(self, action: Action) -> None:
        """The first time that it is met."""
        index, record = action.target, action.record
        if index in self._known:
            return
        if self.values["auto.create"] and not self._documents.uses_streams:
            path = f"/{quote(index, safe='')}"
            if self._client.ask("HEAD", path).status == NOT_FOUND:
                self._create(path, record)
        self._known.add(index)

    def _create(self, path: str, record: SinkRecord) -> None:
        body: dict[str, Any] = {}
        schema = record.value_schema
        ignores = self.values["schema.ignore"] or record.topic in self._schemaless
        if schema is not None and schema.type is Type.STRUCT and not ignores:
            body = {"mappings": mappings_of(schema)}
        answer = self._client.ask("PUT", path, orjson.dumps(body))
        if answer.status >= 300 and not any(word in str(answer.body) for word in _THERE):
            raise ConnectError(f"the index {path[1:]} cannot be made: {answer.status} {_reason(answer.body)}")

    def flush(self, offsets: Mapping[TopicPlace, int]) -> None:
        """All is written when `put` returns."""

    def stop(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()


def _reason(error: Any) -> str:
    said = error.get("error", error) if isinstance(error, dict) else error
    if not isinstance(said, dict):
        return str(said)[:500]
    cause = said.get("caused_by")
    inner = f": {cause.get('reason')}" if isinstance(cause, dict) else ""
    return f"{said.get('type')}: {said.get('reason')}{inner}"[:500]


class ElasticsearchSink(SinkConnector):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",)
    task_class = ElasticsearchSinkTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            return mistakes_of(SETTINGS.parse(given))
        except InvalidConfig:
            return {}  # the table has told it

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [dict(self.given) for _ in range(max_tasks)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[TopicPlace, int | None]) -> bool:
        return True
