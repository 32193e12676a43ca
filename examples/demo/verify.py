"""The same summary once more, in plain Python from the invented day, to compare with what is in the topics."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import pyarrow as pa

import penstock.arrow
from examples.demo import topics
from examples.demo.day import HOUR, Measurement, Upload
from examples.demo.formula import fat_free_mass_kg, fat_percent, phase_angle_degrees
from examples.demo.way import Way
from penstock.consumer.dead_letters import parse

WATERMARK_DELAY = timedelta(hours=2)
ROUNDING = 0.0011  # the summary has three decimals


class Averages(NamedTuple):
    measurements: int
    fat_free_mass_kg: float
    fat_percent: float
    phase_angle_degrees: float


Place = tuple[datetime, str]  # the beginning of the hour, and the sector
Summary = dict[Place, Averages]


class Outcome(NamedTuple):
    summary: Summary
    refused: Counter[str]  # by cause
    too_late: int
    problems: list[str]  # none: everything is as it should be


def watermark(uploads: Iterable[Upload]) -> datetime:
    """Where Spark's is when it has seen all of these."""
    newest = max(each.at for each in _measurements(uploads) if each.is_for_the_formula)
    return newest - WATERMARK_DELAY


def expected_summary(uploads: Sequence[Upload]) -> Summary:
    """Of all windows that are closed."""
    closed = watermark(uploads)
    bodies: dict[Place, list[tuple[float, float, float]]] = defaultdict(list)
    for each in _measurements(uploads):
        if each.counts and each.worker is not None and _hour(each) + HOUR <= closed:
            bodies[_hour(each), each.worker.sector].append(_body(each))
    return {
        place: Averages(len(found), *(sum(column) / len(found) for column in zip(*found, strict=True)))
        for place, found in bodies.items()
    }


def check(way: Way, uploads: Sequence[Upload]) -> Outcome:
    """Reads the topics as anybody would: only what is committed."""
    summary, problems = _read_summary(way)
    refused = _read_refused(way)
    expected = expected_summary(uploads)
    if summary.keys() != expected.keys():
        problems.append(f"{len(summary)} rows in {topics.SUMMARY}, expected were {len(expected)}")
    for place in summary.keys() & expected.keys():
        found, wanted = summary[place], expected[place]
        if found.measurements != wanted.measurements or any(
            abs(a - b) > ROUNDING for a, b in zip(found, wanted, strict=True)
        ):
            problems.append(f"{place[1]} at {place[0]:%H:%M}: {found}, expected was {wanted}")
    expected_refused = Counter(each.refused_for for each in _measurements(uploads) if each.refused_for)
    if refused != expected_refused:
        problems.append(f"refused: {dict(refused)}, expected were {dict(expected_refused)}")
    return Outcome(
        summary, refused, _due(uploads) - sum(row.measurements for row in summary.values()), problems
    )


def _due(uploads: Sequence[Upload]) -> int:
    """How many the summary would hold if none had come too late."""
    closed = watermark(uploads)
    return sum(each.is_for_the_formula and _hour(each) + HOUR <= closed for each in _measurements(uploads))


def _hour(each: Measurement) -> datetime:
    return each.at.replace(minute=0, second=0, microsecond=0)


def _read(topic: str, way: Way, *, include_headers: bool = False) -> pa.Table:
    return penstock.arrow.read(
        topic, bootstrap=way.bootstrap, options=way.options, include_headers=include_headers
    )


def _read_summary(way: Way) -> tuple[Summary, list[str]]:
    summary: Summary = {}
    problems = []
    for value in _read(topics.SUMMARY, way)["value"].to_pylist():
        row = json.loads(value)
        place = datetime.fromisoformat(row["begin"]), row["sector"]
        if place in summary:
            problems.append(f"{place[1]} at {place[0]:%H:%M} is there twice")
        summary[place] = Averages(*(row[name] for name in Averages._fields))
    return summary, problems


def _read_refused(way: Way) -> Counter[str]:
    """Dead letters have their cause in a header; SQL cannot write headers, and has it in a column."""
    letters = _read(topics.DEAD_LETTERS, way, include_headers=True)
    causes: Counter[str] = Counter()
    for headers, value in zip(letters["headers"].to_pylist(), letters["value"].to_pylist(), strict=True):
        letter = parse([(header["key"], header["value"]) for header in headers or ()])
        cause = _cause_in(value) if letter is None else letter.failure.cause
        causes[cause.rpartition(".")[2]] += 1
    return causes


def _cause_in(value: bytes) -> str:
    try:
        return str(json.loads(value)["CAUSE"])
    except (ValueError, KeyError, TypeError):
        return "no dead letter"


def _measurements(uploads: Iterable[Upload]) -> Iterable[Measurement]:
    return (each for upload in uploads for each in upload.measurements)


def _body(each: Measurement) -> tuple[float, float, float]:
    worker = each.worker
    assert worker is not None
    lean_kg = fat_free_mass_kg(
        height_cm=worker.height_cm,
        weight_kg=worker.weight_kg,
        resistance_ohm=each.resistance_ohm,
        reactance_ohm=each.reactance_ohm,
        is_male=float(worker.sex == "M"),
    )
    return (
        lean_kg,
        fat_percent(fat_free_mass_kg=lean_kg, weight_kg=worker.weight_kg),
        phase_angle_degrees(resistance_ohm=each.resistance_ohm, reactance_ohm=each.reactance_ohm),
    )
