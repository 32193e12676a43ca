"""Records of topics to an HTTP endpoint, each or in batches.

At least once. What was sent is not sent again when a later record of the same call fails; after a crash it may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

import penstock
from penstock.connect.connectors.http.client import AUTHORIZATION, RETRIABLE, Answer, Endpoint, mistakes_of
from penstock.connect.data.structs import Struct
from penstock.connect.errors import ConnectError, DataError, InvalidConfig, RetriableError
from penstock.connect.interface import Config, SinkConnector, SinkTask, TopicPlace
from penstock.connect.records import SinkRecord
from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, between

NEWLINE: Final = "\n"

SETTINGS: Final = AUTHORIZATION | Settings(
    Setting("http.headers.content.type", Kind.STRING, "The header Content-Type.", default=None, importance=LOW),
    Setting("batching.enabled", Kind.BOOLEAN, "Several records in a request.", default=False, importance=HIGH),
    Setting("batch.max.size", Kind.INT, "The most records in a request.", default=500, check=between(1, 1_000_000)),
    Setting("batch.prefix", Kind.STRING, "In front of the first record of a batch; \\n is a new line.", default=""),
    Setting("batch.suffix", Kind.STRING, "Behind the last record of a batch; a new line when it is not set.", default=None),
    Setting("batch.separator", Kind.STRING, "Between the records of a batch; a new line when it is not set.", default=None),
    Setting("max.retries", Kind.INT, "How often a request is sent again; then the task fails.", default=1, check=at_least(0)),
    Setting("retry.backoff.ms", Kind.INT, "The wait before it is sent again.", default=3000, check=at_least(0)),
    Setting("kafka.retry.backoff.ms", Kind.LONG, "Stands over retry.backoff.ms where it is set.", default=None),
)  # fmt: skip
_ESCAPES: Final = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}
# A request that is wrong as such: no other record would fare better.
_WRONG_PLACE: Final = (404, 405, 501)


class HttpSinkTask(SinkTask):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("io.aiven.kafka.connect.http.HttpSinkTask",)

    def start(self) -> None:
        values = self.values
        kind = values["http.headers.content.type"]
        self._endpoint = Endpoint(values, {"Content-Type": kind} if kind else {})
        self._size: int = values["batch.max.size"] if values["batching.enabled"] else 1
        self._is_batching: bool = values["batching.enabled"]
        self._prefix, self._separator, self._suffix = (
            _unescaped(values[f"batch.{name}"], default)
            for name, default in (("prefix", ""), ("separator", NEWLINE), ("suffix", NEWLINE))
        )
        self._retries_left: int = values["max.retries"]
        wait_ms = values["kafka.retry.backoff.ms"]
        self._wait_s: float = (values["retry.backoff.ms"] if wait_ms is None else wait_ms) / 1000
        self._sent: dict[TopicPlace, int] = {}  # behind what the endpoint has taken
        self._reported: set[tuple[str, int, int]] = set()  # of a call of put that is made again

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        for place in partitions:
            self._sent.pop(place, None)

    close = open

    def put(self, records: Sequence[SinkRecord]) -> None:
        sent = self._sent
        left = [record for record in records if record.original[2] >= sent.get(record.original[:2], 0)]
        told: list[tuple[SinkRecord, str]] = []
        for record in left:
            try:
                told.append((record, _text_of(record.value)))
            except DataError as error:
                if record.original not in self._reported:
                    self.context.report(record, error)
                    self._reported.add(record.original)
        for start in range(0, len(told), self._size):
            self._send(told[start : start + self._size])
        self._reported.clear()

    def _send(self, part: list[tuple[SinkRecord, str]]) -> None:
        """By halves where the endpoint does not take all of it."""
        answer = self._answer_to(self._body_of([text for _, text in part]))
        if answer.is_good:
            self._take(part)
            self._retries_left = self.values["max.retries"]
            return
        if len(part) > 1:
            middle = len(part) // 2
            self._send(part[:middle])
            self._send(part[middle:])
            return
        self.context.report(part[0][0], DataError(f"{self._endpoint.url} does not take the record: {answer}"))
        self._take(part)

    def _take(self, part: list[tuple[SinkRecord, str]]) -> None:
        for record, _ in part:
            self._sent[record.original[:2]] = record.original[2] + 1

    def _body_of(self, texts: list[str]) -> bytes:
        if not self._is_batching:
            return texts[0].encode()
        return f"{self._prefix}{self._separator.join(texts)}{self._suffix}".encode()

    def _answer_to(self, body: bytes) -> Answer:
        """One that says yes, or no to these records."""
        try:
            answer = self._endpoint.send("POST", body)
        except RetriableError as error:
            raise self._again(str(error), None) from error
        if answer.status in RETRIABLE:
            raise self._again(f"{self._endpoint.url} answers {answer}", answer.retry_after_s)
        if answer.status in _WRONG_PLACE or 300 <= answer.status < 400:
            raise ConnectError(f"{self._endpoint.url} answers {answer}")
        return answer

    def _again(self, text: str, wait_s: float | None) -> ConnectError:
        if self._retries_left <= 0:
            self._retries_left = self.values["max.retries"]
            return ConnectError(f"{text}; that was the last of max.retries attempts")
        self._retries_left -= 1
        self.context.retry_after(max(self._wait_s, wait_s or 0.0))
        return RetriableError(text)

    def flush(self, offsets: Mapping[TopicPlace, int]) -> None:
        """All is sent when `put` returns."""

    def stop(self) -> None:
        if hasattr(self, "_endpoint"):
            self._endpoint.close()


class HttpSink(SinkConnector):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("io.aiven.kafka.connect.http.HttpSinkConnector",)
    task_class = HttpSinkTask

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


def _unescaped(text: str | None, default: str) -> str:
    if text is None:
        return default
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text


def _text_of(value: Any) -> str:
    """Texts as they are, all else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        raise DataError("A record without a value cannot be sent")
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            raise DataError("Bytes that are no text cannot be sent") from None
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError as error:
        raise DataError(f"The value cannot be told in JSON: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return dict(value.items())
    if isinstance(value, bytes | bytearray | memoryview):
        import base64

        return base64.b64encode(value).decode()
    return str(value)
