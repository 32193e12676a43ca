"""Records that could not be read or processed: counted, told, written to the processing log, put among the dead letters.

A record of the processing log is JSON in the form that ksqlDB gives it, so that its users' dashboards and queries read it.
"""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from penstock.streams.kernel.records import InputRecord
from penstock.streams.kernel.task import Trouble
from penstock.streams.running.options import RunOptions

QUIET: Final = frozenset({"late", "skipped"})  # what the plan itself says: counted only
TOLD_EACH_S: Final = 1.0
TEXT_MAX: Final = 2000
_LOGGERS: Final = {"deserialize": "deserializer", "timestamp": "timestamp", "serialize": "serializer"}
_TYPES: Final = {"deserialize": 0, "expression": 1, "timestamp": 1, "process": 1, "serialize": 3}
_PLACES: Final = (
    "deserializationError", "recordProcessingError", "productionError", "serializationError", "kafkaStreamsThreadError",
)  # fmt: skip


class BadRecord(RuntimeError):
    """A record could not be read or processed, and the plan was started so that this ends it."""


class Troubles:
    """Called by the kernel. `write` puts a value into the processing log; `tell` says something to the driver."""

    def __init__(
        self,
        options: RunOptions,
        query_id: str,
        write: Callable[[str, bytes], None],
        tell: Callable[[str, Any], None],
        letter: Callable[[Trouble], None] | None = None,
    ) -> None:
        """`letter` puts the record that was being processed among the dead letters."""
        self.counts: Counter[str] = Counter()
        self._options, self._query_id = options, query_id
        self._write, self._tell, self._letter = write, tell, letter
        self._told_s = 0.0
        self._is_known = False

    @contextmanager
    def known(self) -> Iterator[None]:
        """While records are read once more: what is wrong with them was told when they came. Counted only."""
        self._is_known = True
        try:
            yield
        finally:
            self._is_known = False

    def __call__(self, trouble: Trouble) -> None:
        self.counts[trouble.kind] += 1
        if trouble.kind in QUIET or self._is_known:
            return
        text = _text(trouble)
        if self._options.fails_on_bad_records:
            raise BadRecord(f"{_where(trouble.record)}: {text}")
        topic = self._options.processing_log
        if topic is not None:
            self._write(topic, json.dumps(_form(trouble, text, self._query_id)).encode())
        if self._letter is not None and trouble.is_left_out:
            self._letter(trouble)
        now_s = time.monotonic()
        if now_s - self._told_s >= TOLD_EACH_S:
            self._told_s = now_s
            self._tell(
                "trouble",
                {"node": trouble.node, "kind": trouble.kind, "text": text, "where": _where(trouble.record)},
            )


def _text(trouble: Trouble) -> str:
    error = trouble.error
    text = (
        f"{type(error).__name__}: {error}"
        if isinstance(error, BaseException) and not str(error)
        else str(error)
    )
    return text[:TEXT_MAX]


def _where(record: Any) -> str:
    if isinstance(record, InputRecord):
        return f"{record.topic}-{record.partition}@{record.offset}"
    return "" if record is None else f"partition {getattr(record, 'partition', '?')}"


def _form(trouble: Trouble, text: str, query_id: str) -> dict[str, Any]:
    kind = _TYPES.get(trouble.kind, 1)
    detail: dict[str, Any] = {"errorMessage": text}
    record = trouble.record
    if kind == 0:
        data = record.value if isinstance(record, InputRecord) else None
        detail |= {
            "target": "value",
            "recordB64": None if data is None else base64.b64encode(data).decode(),
            "cause": [],
            "topic": record.topic if isinstance(record, InputRecord) else None,
        }
    else:
        value = getattr(record, "value", None)
        detail |= {"record": None if value is None else json.dumps(value, default=str), "cause": []}
    message: dict[str, Any] = {"type": kind, **dict.fromkeys(_PLACES)}
    message[_PLACES[kind]] = detail
    return {
        "level": "ERROR",
        "logger": ".".join(
            each for each in ("processing", query_id, trouble.node, _LOGGERS.get(trouble.kind, "")) if each
        ),
        "time": int(time.time() * 1000),
        "message": message,
    }
