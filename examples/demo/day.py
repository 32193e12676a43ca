"""A working day: who is measured when, which stations send late, and what is broken.

Every measurement knows what should become of it, so that the result can be checked without asking the pipeline's rules.

    07:00 … 19:00   twelve uploads, each with the measurements of an hour and some of the hour before (a station had no
                    network); the watermark waits two hours, so these count
    next morning    one small upload. It closes the windows of the day, and it has measurements of the day's second hour,
                    from a tablet that was found in a drawer: far behind the watermark, these are dropped
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from examples.demo.formula import FREQUENCY_KHZ
from examples.demo.population import Population, Worker

FIRST_HOUR = datetime(2026, 3, 2, 7, tzinfo=UTC)
HOUR = timedelta(hours=1)
# How many come in each hour, relative to the others: two shifts, and lunch.
CROWD = (6, 9, 10, 9, 7, 3, 6, 9, 10, 9, 7, 5)
NEXT_MORNING = 1.5  # in the same measure
NEXT_MORNING_TOO_LATE = 0.3  # of that upload

LATE = 0.04
BROKEN = 0.02
MULTI_FREQUENCY = 0.15  # of the visits are measured at four frequencies
STATIONS = ("E1", "E2", "E3", "E4", "E5", "E6")
# Resistance and reactance of a body at other frequencies, relative to 50 kHz.
FREQUENCIES = {5.0: (1.13, 0.60), FREQUENCY_KHZ: (1.0, 1.0), 100.0: (0.95, 0.94), 200.0: (0.91, 0.86)}

NOT_JSON, MISSING_FIELD, OUT_OF_RANGE, UNKNOWN_WORKER = (
    "NotJson",
    "MissingField",
    "OutOfRange",
    "UnknownWorker",
)


class Measurement(NamedTuple):
    worker: Worker | None  # None: nobody whom the company knows
    at: datetime
    frequency_khz: float
    resistance_ohm: float
    reactance_ohm: float
    key: str
    value: bytes
    refused_for: str | None = None
    is_too_late: bool = False

    @property
    def counts(self) -> bool:
        return self.is_for_the_formula and not self.is_too_late

    @property
    def is_for_the_formula(self) -> bool:
        return self.refused_for is None and self.frequency_khz == FREQUENCY_KHZ


class Upload(NamedTuple):
    upload: str
    begin: datetime
    measurements: list[Measurement]
    is_next_morning: bool


def uploads(count: int, people: Population, chance: random.Random) -> Iterator[Upload]:
    """`count` measurements altogether."""
    shares = [*CROWD, NEXT_MORNING]
    sent = 0
    for number, _ in enumerate(shares):
        is_next_morning = number == len(CROWD)
        begin = FIRST_HOUR + timedelta(days=1) if is_next_morning else FIRST_HOUR + number * HOUR
        until = round(count * sum(shares[: number + 1]) / sum(shares))
        name = f"lote-{number + 1:02d}"
        maker = _Maker(name, begin, people, chance)
        measurements = [maker.next(number, is_next_morning) for _ in range(sent, until)]
        yield Upload(name, begin, measurements, is_next_morning)
        sent = until


class _Maker:
    """Makes the measurements of one upload."""

    def __init__(self, upload: str, begin: datetime, people: Population, chance: random.Random) -> None:
        self._upload = upload
        self._begin = begin
        self._people = people
        self._chance = chance
        self._visit: list[Measurement] = []  # what is left of a visit with several frequencies

    def next(self, number: int, is_next_morning: bool) -> Measurement:
        if not self._visit:
            self._visit = self._new_visit(number, is_next_morning)
        measurement = self._visit.pop()
        return self._broken(measurement) if self._chance.random() < BROKEN else measurement

    def _new_visit(self, number: int, is_next_morning: bool) -> list[Measurement]:
        chance = self._chance
        worker = chance.choice(self._people.workers)
        is_too_late = is_next_morning and chance.random() < NEXT_MORNING_TOO_LATE
        begin = self._begin
        if is_too_late:
            begin = FIRST_HOUR + HOUR
        elif number > 0 and not is_next_morning and chance.random() < LATE:
            begin -= HOUR
        at = begin + timedelta(milliseconds=chance.randrange(3_600_000))
        # Bodies hold more water as the day goes on, and every electrode sits a little differently.
        wetness = 1 - 0.0015 * (at.hour - FIRST_HOUR.hour)
        resistance_ohm = worker.resistance_ohm * wetness * chance.gauss(1, 0.008)
        reactance_ohm = worker.reactance_ohm * chance.gauss(1, 0.015)
        several = chance.random() < MULTI_FREQUENCY
        visit = []
        for frequency_khz in FREQUENCIES if several else (FREQUENCY_KHZ,):
            of_resistance, of_reactance = FREQUENCIES[frequency_khz]
            r, x = round(resistance_ohm * of_resistance, 1), round(reactance_ohm * of_reactance, 1)
            record = self._record(worker.worker, at, frequency_khz, r, x)
            visit.append(
                Measurement(worker, at, frequency_khz, r, x, worker.worker, _json(record), None, is_too_late)
            )
        return visit

    def _record(self, worker: str, at: datetime, frequency_khz: float, r: float, x: float) -> dict[str, Any]:
        return {
            "worker": worker,
            "upload": self._upload,
            "station": self._chance.choice(STATIONS),
            "at": at.isoformat(timespec="milliseconds"),
            "frequency_khz": frequency_khz,
            "resistance_ohm": r,
            "reactance_ohm": x,
        }

    def _broken(self, good: Measurement) -> Measurement:
        """What happens in reality: cut-off lines, forgotten fields, loose electrodes, swapped cables, visitors."""
        chance = self._chance
        record = json.loads(good.value)
        match chance.randrange(5):
            case 0:
                return good._replace(value=good.value[: len(good.value) // 2], refused_for=NOT_JSON)
            case 1:
                del record[chance.choice(("at", "resistance_ohm", "reactance_ohm", "frequency_khz"))]
                return good._replace(value=_json(record), refused_for=MISSING_FIELD)
            case 2:
                record["resistance_ohm"] = chance.choice((0.0, 9999.9))
                return good._replace(value=_json(record), refused_for=OUT_OF_RANGE)
            case 3:
                record["reactance_ohm"] = -record["reactance_ohm"]
                return good._replace(value=_json(record), refused_for=OUT_OF_RANGE)
            case _:
                stranger = chance.choice([*self._people.gone, "visitante"])
                record["worker"] = stranger
                return good._replace(
                    worker=None, key=stranger, value=_json(record), refused_for=UNKNOWN_WORKER
                )


def _json(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()
