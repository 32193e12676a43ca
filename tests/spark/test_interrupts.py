"""Ctrl-C in a program with streaming queries, and what its terminal has shown by then."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import penstock.arrow
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.spark.under_fire import DEADLINE_S, Feeder, Output, start_driver, until


def test_a_program_that_is_interrupted_says_so_and_nothing_of_the_jvm(
    broker: PenstockBroker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, copy, shuffled = make_topic(), make_topic(), make_topic()
    driver = start_driver(broker.bootstrap, [source, copy, shuffled], tmp_path)
    # Fed without a pause: both queries are in the middle of a batch when they are interrupted.
    feeder = Feeder(broker.bootstrap, source, [Output(broker.bootstrap, copy)])
    feeder.start()
    until(
        lambda: penstock.arrow.read(shuffled, bootstrap=broker.bootstrap).num_rows > 0,
        "the first row",
        driver,
    )
    os.killpg(driver.pid, signal.SIGINT)  # the JVM and the workers as well, as a terminal does
    assert driver.wait(timeout_s=DEADLINE_S) != 0
    feeder.finish()
    shown = driver.log_text().splitlines()
    assert shown[0].startswith(
        "WARNING: Using incubator modules"
    )  # java itself; of Spark's start nothing else
    assert shown[1].startswith("Traceback")
    assert "KeyboardInterrupt" in shown
    assert not [line for line in shown if "ERROR" in line or line.startswith("\tat ")]
