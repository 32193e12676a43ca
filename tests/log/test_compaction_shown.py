"""How far the compaction is, as `penstock topics describe` shows it."""

import json
import re

import pytest

from penstock.admin.compaction import of_cleaner
from penstock.cli.verbs.compaction import ago
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.describe_log_dirs import PenstockCleaner
from tests.cli.conftest import run_command
from tests.conftest import StartBroker
from tests.log.test_compaction import COMPACTED, compactions, create, produce, wait_for


@pytest.fixture
def compacted(start_broker: StartBroker) -> PenstockBroker:
    """With a topic `prices` that was compacted."""
    broker = start_broker(options={"log.cleaner.backoff.ms": "50"})
    create(broker, "prices", *COMPACTED, "segment.ms=200")
    produce(broker, "prices", *(f"k{number % 3},{number}" for number in range(30)))

    def is_compacted() -> bool:
        produce(
            broker, "prices", "k0,last"
        )  # as in Kafka a record that comes after segment.ms closes a segment
        return bool(compactions(broker, "prices"))

    wait_for(is_compacted, "a compaction")
    return broker


def described(broker: PenstockBroker, topic: str, *words: str) -> str:
    done = run_command(
        "penstock", "topics", "describe", topic, "--bootstrap-server", broker.bootstrap, *words
    )
    assert done.code == 0, done.err
    return done.out


def test_describe_tells_of_the_last_compaction(compacted: PenstockBroker) -> None:
    shown = described(compacted, "prices")
    assert re.search(r"partition\s+dirty\s+last run\s+took\s+removed\s+kept\s+now", shown)
    assert re.search(r"0\s+\d+%\s+\d+ s ago\s+[\d.]+ s\s+\d+\s+\d+\s+(waiting|due|running)", shown)
    (topic,) = json.loads(described(compacted, "prices", "-o", "json"))
    compaction = topic["partitions"][0]["compaction"]
    assert compaction["runs"] >= 1
    assert compaction["records_kept"] >= 3
    assert compaction["bytes_read"] > 0
    assert compaction["uncleanable_reason"] is None


def test_describe_of_a_topic_that_is_not_compacted_says_nothing_of_it(compacted: PenstockBroker) -> None:
    create(compacted, "orders")
    assert "compaction" not in described(compacted, "orders")
    assert "compaction" not in described(compacted, "orders", "-o", "json")


@pytest.mark.parametrize(
    ("cleaner", "state"),
    [
        (PenstockCleaner(), "waiting"),
        (PenstockCleaner(is_cleanable=True), "due"),
        (PenstockCleaner(is_cleanable=True, progress=0.45), "running, 45% done"),
        (PenstockCleaner(uncleanable_reason="a bad batch"), "cannot be compacted: a bad batch"),
    ],
)
def test_a_partition_is_in_one_state(cleaner: PenstockCleaner, state: str) -> None:
    assert of_cleaner(cleaner).state == state


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (59.9, "59 s"), (60, "1 min"), (7300, "2 h"), (86_400 * 3, "3 d")]
)
def test_an_age_has_one_unit(seconds: float, text: str) -> None:
    assert ago(seconds) == text
