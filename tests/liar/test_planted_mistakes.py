"""A few seeds with our clients as they are; and with a mistake in one of them, which some seed must find."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from penstock.client import fetching
from penstock.client.topics import Client
from penstock.consumer.guarantees import AT_LEAST_ONCE
from penstock.consumer.writing import Deliveries
from penstock.spark.reading.topics import Topics
from penstock.spark.writing.markers import NOTHING_WRITTEN, Markers
from simulation.liar import lies
from simulation.liar.scenarios import processing
from simulation.liar.seeds import SCENARIOS, perform
from simulation.liar.world import World

SEEDS = range(1, 40)  # a mistake is found by the first few
DEADLINE_S = 8.0
COMMAND_TIMEOUT_S = 120


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as running:
        yield running


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_nothing_goes_wrong_without_lies(world: World, scenario: str) -> None:
    report = perform(1, world, scenario=scenario, only=frozenset())
    assert report.violations == []
    assert not report.lies
    expected = {"Killed", "ReadFailed"} if scenario == "read-while-records-go" else {"Killed"}
    assert set(report.errors) <= expected


def is_found(world: World, scenario: str, *kinds: str, text: str = "") -> bool:
    only = frozenset(kinds)
    return any(
        text in violation
        for seed in SEEDS
        for violation in perform(seed, world, scenario=scenario, only=only, deadline_s=DEADLINE_S).violations
    )


def test_a_reader_that_takes_an_empty_answer_for_the_end_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "GAP_PATIENCE_S", -1.0)
    monkeypatch.setattr(Client, "is_compacted", lambda client, topic: True)
    assert is_found(world, "read-tables", lies.EMPTY, text="are missing")


def test_a_source_that_takes_an_unknown_topic_for_a_deleted_one_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Topics, "_wait_for_missing", lambda topics, missing: None)
    assert is_found(world, "read-stream", lies.FORGET)


def test_a_sink_that_does_not_know_what_it_has_written_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Markers, "read", lambda markers: NOTHING_WRITTEN)
    assert is_found(world, "write-exactly-once", lies.CUT_AFTER)


def test_a_processor_that_does_not_wait_for_its_outputs_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processing, "GUARANTEES", (AT_LEAST_ONCE,))
    monkeypatch.setattr(Deliveries, "flush", lambda deliveries: None)
    assert is_found(world, "process", lies.DELAY, lies.CUT_BEFORE, text="are missing")


def test_the_command_runs_seeds_and_says_what_was_told() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "simulation.liar", "--seeds", "2", "--jobs", "1", "--scenario", "read-tables"],
        capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 seeds from 1: 0 failed" in result.stdout
    assert "lies by kind:" in result.stdout
