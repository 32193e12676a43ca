"""Whole clusters under a few seeds; and clusters with a mistake in them, which the simulation must find."""

import os
import subprocess
import sys

import pytest

from penstock.broker.handlers import produce
from penstock.broker.partition import Partition
from penstock.storage.producer_state import ProducerState
from penstock.testing.simulation.scenario import simulate

SEEDS = 12
MISTAKEN_SEEDS = range(1, 60)  # most are found by the first few; strings hash differently in each process


def command(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return subprocess.run(
        [sys.executable, "-m", "penstock.testing.simulation", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def test_clusters_under_faults_break_no_invariant():
    result = command("--seeds", str(SEEDS), "--jobs", "1")
    assert result.returncode == 0, result.stderr + result.stdout
    assert f"{SEEDS} seeds from 1: 0 failed" in result.stdout


def test_a_seed_is_the_same_run_in_every_process():
    first, second = command("--seed", "3"), command("--seed", "3")
    assert first.stdout == second.stdout
    assert "digest" in first.stdout


def test_a_seed_is_the_same_run_twice_and_others_are_others():
    assert simulate(2).digest == simulate(2).digest != simulate(4).digest


def is_found(text):
    return any(
        text in violation for seed in MISTAKEN_SEEDS for violation in simulate(seed, brokers=3).violations
    )


def test_a_broker_that_acknowledges_before_its_followers_have_it_is_found(monkeypatch):
    class NoWait:
        def __init__(self, loop, uncommitted, finish, *, timeout_ms):
            finish({})

        def cancel(self):
            pass

    monkeypatch.setattr(produce, "CommitWait", NoWait)
    assert is_found("is lost")


def test_a_broker_that_takes_every_batch_for_a_new_one_is_found(monkeypatch):
    monkeypatch.setattr(ProducerState, "check", lambda *args: None)
    assert is_found("is there twice")


def test_a_broker_that_shows_what_is_not_committed_is_found(monkeypatch):
    def read_all(partition, offset, max_bytes, *, isolation_level, at_least_one):
        found = partition.log.read(offset, max_bytes, end_offset=partition.log.end_offset, at_least_one=True)
        return found if found.size_bytes else None

    monkeypatch.setattr(Partition, "read", read_all)
    assert is_found("a consumer saw")


def test_a_command_that_makes_no_sense_is_refused():
    result = command("--seeds", "none")
    assert result.returncode == 2
    assert "invalid" in result.stderr


@pytest.mark.parametrize("brokers", [1, 4])
def test_other_numbers_of_brokers_work(brokers):
    assert simulate(7, brokers=brokers).violations == []
