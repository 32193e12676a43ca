"""What an HTTP endpoint answers, to a topic: asked from time to time, an item of the answer a record.

    http.url=https://api.example.com/events?after=${offset}   http.response.items=data.events   http.offset.field=id

Items come at least once; with http.offset.field those whose field is not larger than before are left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import penstock
from penstock.connect.connectors.http.client import AUTHORIZATION, RETRIABLE, Endpoint, mistakes_of
from penstock.connect.data.schema import STRING
from penstock.connect.errors import ConnectError, DataError, InvalidConfig, RetriableError
from penstock.connect.interface import SourceConnector, SourcePlace, SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.settings import HIGH, Kind, Setting, Settings, at_least, one_of

OFFSET: Final = "offset"
MARK: Final = "${offset}"
MAX_WAIT_S: Final = 1.0

SETTINGS: Final = AUTHORIZATION | Settings(
    Setting("topic", Kind.STRING, "The topic that the items go to.", importance=HIGH),
    Setting("http.method", Kind.STRING, "GET, or POST with http.body.", default="GET", check=one_of("GET", "POST")),
    Setting("http.body", Kind.STRING, "What is sent with POST; ${offset} stands for the offset.", default=None),
    Setting("poll.interval.ms", Kind.LONG, "How often it is asked.", default=60_000, check=at_least(1)),
    Setting("http.response.items", Kind.STRING, "Where in the answer the items are, such as data.items or data[0].items; empty: "
            "the whole answer, or all of it where it is a list.", default=""),
    Setting("http.offset.field", Kind.STRING, "Where in an item the field is that grows.", default="", importance=HIGH),
    Setting("http.offset.initial", Kind.STRING, "The offset of the first request.", default=""),
    Setting("http.key.field", Kind.STRING, "Where in an item the key of the record is.", default=""),
)  # fmt: skip


class HttpSourceTask(SourceTask):
    version = penstock.__version__
    settings = SETTINGS

    def start(self) -> None:
        values = self.values
        self._endpoint = Endpoint(values, {"Accept": "application/json"})
        self._partition = {"url": values["http.url"]}
        kept = self.context.offset(self._partition)
        self._offset: Any = None if kept is None else kept.get(OFFSET)
        self._field: str = values["http.offset.field"]
        self._due_s = 0.0

    def poll(self) -> Sequence[SourceRecord] | None:
        wait_s = self._due_s - time.monotonic()
        if wait_s > 0:
            self.context.wait(min(wait_s, MAX_WAIT_S))
            return None
        self._due_s = time.monotonic() + self.values["poll.interval.ms"] / 1000
        try:
            items = self._ask()
        except RetriableError as error:
            self.log.warning("%s", error)  # asked again at its time
            return None
        return [record for item in items if (record := self._record(item)) is not None]

    def _ask(self) -> list[Any]:
        values = self.values
        offset = values["http.offset.initial"] if self._offset is None else self._offset
        url = values["http.url"].replace(MARK, quote(str(offset), safe=""))
        body = values["http.body"]
        data = None if body is None else body.replace(MARK, str(offset)).encode()
        answer = self._endpoint.send(values["http.method"], data, url)
        if answer.status in RETRIABLE:
            raise RetriableError(f"{url} answers {answer}")
        if not answer.is_good:
            raise ConnectError(f"{url} answers {answer}")
        if not answer.body.strip():
            return []
        try:
            found = at_path(json.loads(answer.body), values["http.response.items"])
        except ValueError:
            raise ConnectError(f"{url} does not answer with JSON") from None
        if found is None:
            return []
        return found if isinstance(found, list) else [found]

    def _record(self, item: Any) -> SourceRecord | None:
        values = self.values
        if self._field:
            offset = at_path(item, self._field)
            if offset is None or isinstance(offset, dict | list):
                error = DataError(f"An item has no field {self._field} to go on from")
                self.context.report(self._made(item), error)
                return None
            if self._offset is not None and not _is_behind(offset, self._offset):
                return None
            self._offset = offset
        key = at_path(item, values["http.key.field"]) if values["http.key.field"] else None
        return self._made(item, None if key is None else key if isinstance(key, str) else json.dumps(key))

    def _made(self, item: Any, key: str | None = None) -> SourceRecord:
        offset = None if self._offset is None else {OFFSET: self._offset}
        return SourceRecord(
            self._partition,
            offset,
            self.values["topic"],
            item,
            key=key,
            key_schema=None if key is None else STRING,
        )

    def stop(self) -> None:
        if hasattr(self, "_endpoint"):
            self._endpoint.close()


class HttpSource(SourceConnector):
    version = penstock.__version__
    settings = SETTINGS
    task_class = HttpSourceTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            return mistakes_of(SETTINGS.parse(given))
        except InvalidConfig:
            return {}  # the table has told it

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[Any, SourcePlace | None]) -> bool:
        for offset in offsets.values():
            if offset is not None and OFFSET not in offset:
                raise ConnectError(f"An offset has {OFFSET}")
        return True


def at_path(value: Any, path: str) -> Any:
    """`data.items`, `$.data[0].items`; None where there is nothing."""
    steps = path.strip().removeprefix("$").replace("[", ".").replace("]", "").split(".")
    for step in filter(None, steps):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _is_behind(offset: Any, before: Any) -> bool:
    try:
        return bool(offset > before)
    except TypeError:
        return str(offset) > str(before)
