"""Apache's tools in a JVM that stays say and do what they do in one of their own."""

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import ProcessFailed
from simulation.apache.java import java_tool
from simulation.apache.resident_tools import resident_tool
from tests.conftest import MakeTopic
from tests.tools.conftest import TOOLS


def test_a_tool_says_and_ends_as_in_a_jvm_of_its_own(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    words = (f"{TOOLS}.TopicCommand", "--bootstrap-server", broker.bootstrap)
    for told in (
        ("--describe", "--topic", make_topic(partitions=2)),
        ("--create", "--topic", make_topic()),  # exists: an error of the broker
        ("--create",),  # refused by the tool, which ends the JVM in the middle
        ("--nonsense",),
    ):
        alone = java_tool(*words, *told, check=False)
        for _ in range(2):  # nothing is left of the first
            done = resident_tool(*words, *told, check=False)
            assert (done.stdout, done.returncode) == (alone.stdout, alone.returncode)
            # Only the name of the thread differs, and the end of a stack trace.
            assert done.stderr.splitlines()[:1] == [
                line.replace("[main]", "[Thread-1]") for line in alone.stderr.splitlines()[:1]
            ]


def test_a_tool_that_does_not_end_is_ended_and_the_next_one_runs(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    words = ("--bootstrap-server", broker.bootstrap)
    reading = ("--topic", make_topic())
    with pytest.raises(ProcessFailed, match=r"ConsoleConsumer was still running after 2 s"):
        resident_tool(f"{TOOLS}.consumer.ConsoleConsumer", *words, *reading, timeout_s=2.0)
    assert reading[1] in resident_tool(f"{TOOLS}.TopicCommand", *words, "--list").stdout.split()


def test_a_failure_shows_what_the_tool_said(broker: PenstockBroker) -> None:
    with pytest.raises(ProcessFailed, match=r"(?s)TopicCommand ended with 1:.*nonsense is not a recognized"):
        resident_tool(f"{TOOLS}.TopicCommand", "--bootstrap-server", broker.bootstrap, "--nonsense")
