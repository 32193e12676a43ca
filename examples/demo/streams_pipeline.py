"""The demo's pipeline as a program of `penstock.streams`.

    bioimpedancia.metrica ─ join with the workers ─ Checks ┬ raises ─────────────→ bioimpedancia.metrica.dlq
                                                           └ by sector ─ windows ─→ bioimpedancia.resumo

What `Checks` refuses is raised: the record becomes a dead letter with the exception as its cause.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from examples.demo import topics
from examples.demo.formula import FREQUENCY_KHZ, fat_free_mass_kg, fat_percent, phase_angle_degrees
from examples.demo.rules import FIELDS, RANGES
from examples.demo.way import Way
from penstock.streams import App, col, fn, tumbling

NAME = "bioimpedancia-streams"
WORKER = {"sector": str, "sex": str, "age": int, "height_cm": float, "weight_kg": float}
AVERAGED = ("fat_free_mass_kg", "fat_percent", "phase_angle_degrees")
ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"


class NotJson(ValueError):
    pass


class MissingField(ValueError):
    pass


class OutOfRange(ValueError):
    pass


class UnknownWorker(LookupError):
    pass


class Checks:
    """Refuses what breaks a rule; of the rest, body composition goes on at the time of its measurement."""

    def process(self, row: dict[str, Any], context: Any) -> None:
        measurement = decoded(row["value"])
        for name, (least, most) in RANGES.items():
            if not least <= measurement[name] <= most:
                raise OutOfRange(f"{name} is {measurement[name]}, and can only be {least} to {most}")
        if row["sector"] is None:
            raise UnknownWorker(f"no worker has the number {measurement['worker']}")
        if measurement["frequency_khz"] == FREQUENCY_KHZ:
            at = datetime.fromisoformat(measurement["at"])
            context.forward(row["sector"], composed(measurement, row), round(at.timestamp() * 1000))


def decoded(value: bytes) -> dict[str, Any]:
    try:
        measurement: dict[str, Any] = json.loads(value)
    except ValueError as error:
        raise NotJson(str(error)) from None
    for name in FIELDS:
        if measurement.get(name) is None:
            raise MissingField(f"{name} is missing")
    return measurement


def composed(measurement: dict[str, Any], worker: dict[str, Any]) -> dict[str, float]:
    resistance_ohm, reactance_ohm = measurement["resistance_ohm"], measurement["reactance_ohm"]
    lean_kg = fat_free_mass_kg(
        height_cm=worker["height_cm"],
        weight_kg=worker["weight_kg"],
        resistance_ohm=resistance_ohm,
        reactance_ohm=reactance_ohm,
        is_male=float(worker["sex"] == "M"),
    )
    return {
        "fat_free_mass_kg": lean_kg,
        "fat_percent": fat_percent(fat_free_mass_kg=lean_kg, weight_kg=worker["weight_kg"]),
        "phase_angle_degrees": phase_angle_degrees(
            resistance_ohm=resistance_ohm, reactance_ohm=reactance_ohm
        ),
    }


def program(way: Way) -> App:
    app = App(
        NAME,
        bootstrap=way.bootstrap,
        properties=way.options,
        guarantee="exactly_once",
        dead_letters=topics.DEAD_LETTERS,
        key_format="KAFKA",
    )
    workers = app.table(topics.WORKERS, key={"worker": str}, value=WORKER)
    measurements = app.stream(topics.MEASUREMENTS, key={"worker": str}, value=bytes, value_format="KAFKA")
    bodies = measurements.left_join(workers).process(
        Checks, key={"place": str}, value=dict.fromkeys(AVERAGED, float)
    )
    hourly = bodies.group_by("place").window(tumbling(hours=1, grace="2 hours"))
    means: dict[str, Any] = {name: fn("AVG", col(name)) for name in AVERAGED}
    averages = hourly.aggregate(measurements=fn("COUNT", 1), **means, store="hourly")
    averages.suppress().select(
        "measurements",
        sector=col("place"),
        begin=fn("FORMAT_TIMESTAMP", fn("FROM_UNIXTIME", col("WINDOWSTART")), ISO),
        end=fn("FORMAT_TIMESTAMP", fn("FROM_UNIXTIME", col("WINDOWEND")), ISO),
        **{name: fn("ROUND", col(name), 3) for name in AVERAGED},
    ).to(topics.SUMMARY)
    return app
