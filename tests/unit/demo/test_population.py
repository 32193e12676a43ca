import random

import pytest

from examples.demo.formula import BODY_MASS_INDEX_RANGE, fat_free_mass_kg, fat_percent
from examples.demo.population import AGES, Population, Worker, population

SIZE = 400


@pytest.fixture(scope="module")
def people() -> Population:
    return population(SIZE, random.Random(1))


def test_the_same_seed_gives_the_same_people(people: Population) -> None:
    assert population(SIZE, random.Random(1)) == people


def test_bodies_are_those_that_the_formula_was_found_with(people: Population) -> None:
    least, most = BODY_MASS_INDEX_RANGE
    for worker in people.workers:
        assert least - 0.1 <= worker.weight_kg / (worker.height_cm / 100) ** 2 <= most + 0.1
        assert AGES[0] <= worker.age <= AGES[1]
        assert 250 < worker.resistance_ohm < 1000
        assert 4 <= _fat_percent(worker) <= 50


def test_a_worker_who_moved_has_the_last_sector_in_the_last_record(people: Population) -> None:
    newest = dict(people.history)
    assert len(people.history) > len(newest), "nobody moved"
    for worker in people.workers:
        record = newest[worker.worker]
        assert record is not None
        assert record["sector"] == worker.sector


def test_who_left_has_a_tombstone_and_is_measured_no_more(people: Population) -> None:
    newest = dict(people.history)
    assert people.gone
    assert all(newest[name] is None for name in people.gone)
    assert not {worker.worker for worker in people.workers} & set(people.gone)


def _fat_percent(worker: Worker) -> float:
    lean_kg = fat_free_mass_kg(
        height_cm=worker.height_cm,
        weight_kg=worker.weight_kg,
        resistance_ohm=worker.resistance_ohm,
        reactance_ohm=worker.reactance_ohm,
        is_male=float(worker.sex == "M"),
    )
    return fat_percent(fat_free_mass_kg=lean_kg, weight_kg=worker.weight_kg)
