"""The workers: bodies as they are among adults, invented with a seed, so that every run has the same ones."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

from examples.demo.formula import BODY_MASS_INDEX_RANGE, fat_free_mass_kg

SECTORS = ("Administração", "Logística", "Manutenção", "Montagem", "Pintura", "Usinagem")
AGES = (20, 65)
MOVED = 0.05  # of the workers have changed their sector: two records, of which the second counts
GONE = 0.02  # have left the company: the last record is a tombstone


class Worker(NamedTuple):
    worker: str
    sector: str
    sex: str  # F or M
    age: int
    height_cm: float
    weight_kg: float
    resistance_ohm: float  # at 50 kHz, on an average day
    reactance_ohm: float


class Population(NamedTuple):
    workers: list[Worker]  # as they are now
    gone: list[str]
    history: list[tuple[str, dict[str, object] | None]]  # the records of the topic, in their order


def population(size: int, chance: random.Random) -> Population:
    history: list[tuple[str, dict[str, object] | None]] = []
    workers, gone = [], []
    for number in range(1, size + 1):
        worker = _worker(f"T{number:04d}", chance)
        if chance.random() < MOVED:
            history.append(_record(worker._replace(sector=chance.choice(SECTORS))))
        history.append(_record(worker))
        if chance.random() < GONE:
            history.append((worker.worker, None))
            gone.append(worker.worker)
        else:
            workers.append(worker)
    return Population(workers, gone, history)


def _record(worker: Worker) -> tuple[str, dict[str, object] | None]:
    """What the company knows of somebody. The impedance is what is measured."""
    known = worker._asdict()
    return worker.worker, {name: known[name] for name in ("sector", "sex", "age", "height_cm", "weight_kg")}


def _worker(name: str, chance: random.Random) -> Worker:
    is_male = chance.random() < 0.55
    age = chance.randint(*AGES)
    height_cm = round(chance.gauss(175.5, 7.0) if is_male else chance.gauss(162.5, 6.5), 1)
    body_mass_index = _within(chance.gauss(25.5, 3.4), *BODY_MASS_INDEX_RANGE)
    weight_kg = round(body_mass_index * (height_cm / 100) ** 2, 1)
    resistance_ohm, reactance_ohm = _impedance(
        height_cm, weight_kg, is_male, _fat_percent(body_mass_index, age, is_male, chance), age, chance
    )
    sector = chance.choice(SECTORS)
    sex = "M" if is_male else "F"
    return Worker(name, sector, sex, age, height_cm, weight_kg, resistance_ohm, reactance_ohm)


def _fat_percent(body_mass_index: float, age: int, is_male: bool, chance: random.Random) -> float:
    """P. Deurenberg, J. A. Weststrate, J. C. Seidell, British Journal of Nutrition 65, 1991, pages 105–114."""
    percent = 1.20 * body_mass_index + 0.23 * age - 10.8 * is_male - 5.4
    return _within(percent + chance.gauss(0, 3), 6.0, 45.0)


def _impedance(
    height_cm: float, weight_kg: float, is_male: bool, fat_percent: float, age: int, chance: random.Random
) -> tuple[float, float]:
    """The resistance for which the formula gives this body: it falls as the resistance grows, so bisection finds it."""
    phase_angle = _within(chance.gauss(7.6 if is_male else 6.7, 0.6) - 0.02 * age, 4.0, 9.0)
    tangent = math.tan(math.radians(phase_angle))
    wanted_kg = weight_kg * (1 - fat_percent / 100)
    low, high = 250.0, 1000.0
    while high - low > 0.1:
        middle = (low + high) / 2
        found_kg = fat_free_mass_kg(
            height_cm=height_cm,
            weight_kg=weight_kg,
            resistance_ohm=middle,
            reactance_ohm=middle * tangent,
            is_male=float(is_male),
        )
        low, high = (middle, high) if found_kg > wanted_kg else (low, middle)
    return low, low * tangent


def _within(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)
