"""Random records to a topic."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import penstock
from penstock.connect.connectors.datagen.quickstarts import QUICKSTARTS
from penstock.connect.connectors.datagen.values import Made, values_of, values_of_parsed
from penstock.connect.data.structs import Struct
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.interface import Config, SourceConnector, SourcePlace, SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least

TASK: Final = "task.id"
NUMBER: Final = "current.iteration"
BLOCK: Final = 1000
"""So many records have a random state of their own, so that a task can go on in the middle."""
AT_ONCE: Final = 1000
WAIT_S: Final = 0.5

SETTINGS: Final = Settings(
    Setting("kafka.topic", Kind.STRING, "The topic that the records go to.", importance=HIGH),
    Setting("quickstart", Kind.STRING, f"A schema by its name: {', '.join(sorted(QUICKSTARTS))}.", default="", importance=HIGH,
            recommended=lambda values: sorted(QUICKSTARTS)),
    Setting("schema.string", Kind.STRING, "The schema, as Avro's JSON.", default="", importance=HIGH),
    Setting("schema.filename", Kind.STRING, "A file with the schema.", default="", importance=HIGH),
    Setting("schema.keyfield", Kind.STRING, "The field that is the key, too; without one there is no key.", default="",
            importance=HIGH),
    Setting("max.interval", Kind.LONG, "The longest wait between two records, in milliseconds; the waits are random. With 0 "
            "there are none.", default=500, importance=HIGH),
    Setting("penstock.records.per.second", Kind.DOUBLE, "An even rate for each task, in the place of max.interval.",
            default=None),
    Setting("iterations", Kind.INT, "How many records each task makes; -1: without end.", default=-1, importance=HIGH),
    Setting("random.seed", Kind.LONG, "With the same number the same records come.", default=None, importance=LOW),
    Setting("generate.timeout", Kind.LONG, "Taken, without an effect.", default=None, check=at_least(1), importance=LOW),
)  # fmt: skip


class DatagenTask(SourceTask):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("io.confluent.kafka.connect.datagen.DatagenTask",)

    def start(self) -> None:
        values = self.values
        made, self._key = described(values)
        self._schema, self._make = made.schema, made.make
        self._topic: str = values["kafka.topic"]
        self._most: int = values["iterations"]
        self._interval_s: float = max(0, values["max.interval"]) / 1000
        rate = values["penstock.records.per.second"]
        self._pause_s = None if not rate else 1 / rate
        self._partition = {TASK: self.context.task}
        kept = self.context.offset(self._partition) or {}
        self._number = int(kept.get(NUMBER, 0))
        seed = kept.get("random.seed", values["random.seed"])
        self._seed: int = time.time_ns() if seed is None else seed
        self._is_seeded = values["random.seed"] is not None
        field = None if not self._key else self._schema.field(self._key)
        self._key_schema = None if field is None else field.schema
        self._random = Random()
        self._waits = Random()
        self._seek()
        self._next_s = time.monotonic()

    def _seek(self) -> None:
        """The random state of this number."""
        begin = self._number - self._number % BLOCK
        self._random.seed(f"{self._seed}/{self._partition[TASK]}/{begin // BLOCK}")
        if self._is_seeded:
            for number in range(begin, self._number):
                self._make(self._random, number)

    def poll(self) -> Sequence[SourceRecord] | None:
        if 0 <= self._most <= self._number:
            self.context.wait(WAIT_S)
            return None
        wait_s = self._next_s - time.monotonic()
        if wait_s > 0:
            self.context.wait(min(wait_s, WAIT_S))
            if self._next_s > time.monotonic():
                return None
        count = self._due()
        if self._most >= 0:
            count = min(count, self._most - self._number)
        return [self._record() for _ in range(count)]

    def _due(self) -> int:
        """How many are to be made now."""
        if self._pause_s is None and not self._interval_s:
            return AT_ONCE
        now_s, count = time.monotonic(), 0
        while self._next_s <= now_s and count < AT_ONCE:
            count += 1
            self._next_s += (
                self._waits.random() * self._interval_s if self._pause_s is None else self._pause_s
            )
        self._next_s = max(self._next_s, now_s - 1)  # what was missed long ago is not made up for
        return count

    def _record(self) -> SourceRecord:
        if not self._number % BLOCK:
            self._seek()
        value = self._make(self._random, self._number)
        self._number += 1
        offset: dict[str, Any] = {NUMBER: self._number, "task.generation": 0, "random.seed": self._seed}
        key = value[self._key] if self._key_schema is not None and isinstance(value, Struct) else None
        return SourceRecord(
            self._partition,
            offset,
            self._topic,
            value,
            key=key,
            key_schema=self._key_schema,
            value_schema=self._schema,
        )


class DatagenSource(SourceConnector):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("io.confluent.kafka.connect.datagen.DatagenConnector",)
    task_class = DatagenTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            described(SETTINGS.parse(given))
        except InvalidConfig as error:
            name = next(
                (each for each in ("schema.string", "schema.filename") if given.get(each)), "quickstart"
            )
            return {name: [str(error)]}
        except KeyError:
            return {}
        return {}

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [dict(self.given) for _ in range(max_tasks)]

    def exactly_once_support(self, given: Mapping[str, str]) -> bool | None:
        return True

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[Any, SourcePlace | None]) -> bool:
        for offset in offsets.values():
            if offset is not None and not isinstance(offset.get(NUMBER), int):
                raise ConnectError(f"An offset has {NUMBER}, which is a number")
        return True


def described(values: Mapping[str, Any]) -> tuple[Made, str]:
    """What is made, and its key's field. InvalidConfig."""
    named = [name for name in ("quickstart", "schema.string", "schema.filename") if values[name]]
    if len(named) != 1:
        raise InvalidConfig("Exactly one of quickstart, schema.string and schema.filename must be set")
    key: str = values["schema.keyfield"]
    if values["quickstart"]:
        found = QUICKSTARTS.get(values["quickstart"].lower())
        if found is None:
            raise InvalidConfig(
                f"There is no quickstart {values['quickstart']}; there are: {', '.join(sorted(QUICKSTARTS))}"
            )
        made, key = values_of_parsed(found.schema), key or found.key
    elif values["schema.filename"]:
        try:
            text = Path(values["schema.filename"]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidConfig(f"schema.filename cannot be read: {error}") from None
        made = values_of(text)
    else:
        made = values_of(values["schema.string"])
    if key and made.schema.field(key) is None:
        raise InvalidConfig(f"schema.keyfield: the schema has no field {key}")
    return made, key
