import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.group_members import create_topic

Run = Callable[..., Any]

DEADLINE_S = 60.0


@pytest.fixture
def topic(broker: PenstockBroker, topic_name: str) -> str:
    create_topic(broker.bootstrap, topic_name)
    return topic_name


def transactional_producer(broker: PenstockBroker, transactional_id: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id, "log_level": 0}
    )
    producer.init_transactions(DEADLINE_S)
    return producer


@pytest.fixture
def open_transaction(broker: PenstockBroker, topic: str) -> Iterator[str]:
    """A transactional id, named as the topic, with one record of an open transaction in it."""
    producer = transactional_producer(broker, topic)
    producer.begin_transaction()
    producer.produce(topic, b"pending")
    assert producer.flush(DEADLINE_S) == 0
    yield topic
    producer.purge()


def table(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("\t")[:-1]] for line in text.splitlines()]


def test_transactions_are_listed_with_their_state(
    kafka: Run, broker: PenstockBroker, open_transaction: str
) -> None:
    done_id = f"done-{open_transaction}"
    producer = transactional_producer(broker, done_id)
    producer.begin_transaction()
    producer.produce(open_transaction, b"x")
    producer.commit_transaction(DEADLINE_S)
    header, *rows = table(kafka("transactions", "list").out)
    assert header == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    states = {row[0]: (row[1], row[3]) for row in rows}
    assert states[open_transaction] == ("1", "Ongoing")
    assert states[done_id] == ("1", "CompleteCommit")
    only = table(kafka("transactions", "list", "--transactional-id-pattern", "done-.*").out)[1:]
    assert done_id in [row[0] for row in only]
    assert open_transaction not in [row[0] for row in only]
    long = table(kafka("transactions", "list", "--duration-filter", "3600000").out)[1:]
    assert open_transaction not in [row[0] for row in long]


def test_a_transaction_is_described(kafka: Run, open_transaction: str) -> None:
    done = kafka("transactions", "describe", "--transactional-id", open_transaction)
    header, row = table(done.out)
    described = dict(zip(header, row, strict=True))
    assert described["TransactionalId"] == open_transaction
    assert described["TransactionState"] == "Ongoing"
    assert described["TransactionTimeoutMs"] == "60000"
    assert 0 <= int(described["TransactionDurationMs"]) < 60_000
    assert described["TopicPartitions"] == f"{open_transaction}-0"
    assert (done.err, done.code) == ("", 0)


def test_the_producers_of_a_partition_are_described(kafka: Run, open_transaction: str) -> None:
    words = ("describe-producers", "--topic", open_transaction, "--partition", "0")
    header, row = table(kafka("transactions", *words).out)
    described = dict(zip(header, row, strict=True))
    assert described["LastSequence"] == "0"
    assert described["CurrentTransactionStartOffset"] == "0"
    assert table(kafka("transactions", *words, "--broker-id", "1").out) == [header, row]


def test_a_transaction_that_its_coordinator_knows_does_not_hang(kafka: Run, open_transaction: str) -> None:
    done = kafka(
        "transactions", "find-hanging", "--topic", open_transaction, "--max-transaction-timeout", "0"
    )
    assert table(done.out) == [
        [
            "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp",
            "Duration(min)",
        ]
    ]  # fmt: skip
    assert done.code == 0


def test_a_transaction_is_aborted_in_its_partition(kafka: Run, open_transaction: str) -> None:
    where = ("--topic", open_transaction, "--partition", "0")
    assert kafka("transactions", "abort", *where, "--start-offset", "7") == (
        "",
        f"Could not find any open transactions starting at offset 7 on partition {open_transaction}-0\n",
        1,
    )
    assert kafka("transactions", "abort", *where, "--start-offset", "0") == ("", "", 0)
    (row,) = table(kafka("transactions", "describe-producers", *where).out)[1:]
    assert row[-1] == "None"


def test_a_transactional_id_is_fenced(kafka: Run, open_transaction: str) -> None:
    done = kafka("transactions", "forceTerminateTransaction", "--transactionalId", open_transaction)
    assert done == ("", "", 0)
    row = table(kafka("transactions", "describe", "--transactional-id", open_transaction).out)[1]
    assert row[4] != "Ongoing"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["describe", "--transactional-id", "nope"], "Failed to describe transaction state of transactional-id `nope`: "),
        (
            ["describe-producers", "--topic", "nope", "--partition", "0"],
            "Failed to describe producers for partition nope-0 on leader: This server does not host this topic-partition.",
        ),
        (["find-hanging"], "The `find-hanging` command requires either --topic or --broker-id to limit the scope"),
        (["find-hanging", "--broker-id", "1", "--partition", "0"], "The --partition argument requires --topic"),
        (["find-hanging", "--topic", "nope"], "Failed to describe 1 topics: This server does not host this"),
        (["abort", "--topic", "t", "--partition", "0"], "The transaction to abort must be identified either with"),
        (
            ["abort", "--topic", "t", "--partition", "0", "--producer-id", "1"],
            "Missing required argument --producer-epoch",
        ),
        (["list", "--duration-filter", "long"], "Cannot parse argument 'long' of option duration-filter"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_line(kafka: Run, words: list[str], reason: str) -> None:
    done = kafka("transactions", *words)
    assert done.err.startswith(reason)
    assert (done.out, done.err.count("\n"), done.code) == ("", 1, 1)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["describe"], "argument --transactional-id is required"),
        ([], "too few arguments: name a command"),
        (["lst"], "invalid choice: 'lst' (choose from list, describe, "),
    ],
)
def test_a_wrong_command_line_is_told_above_the_help(run: Run, words: list[str], reason: str) -> None:
    done = run("kafka-transactions", "--bootstrap-server", "localhost:1", *words)
    assert done.err.startswith(reason)
    assert (done.out, done.code) == ("", 1)


def test_the_help_of_a_command_shows_its_own_options(run: Run) -> None:
    shown = run("kafka-transactions", "list", "--help").err
    assert "--duration-filter" in shown
    assert "--start-offset" not in shown


def test_people_see_transactions_in_tables(penstock: Run, open_transaction: str) -> None:
    listed = json.loads(penstock("transactions", "list", "-o", "json").out)
    assert (open_transaction, "Ongoing") in [(one["transactional_id"], one["state"]) for one in listed]
    described = json.loads(penstock("transactions", "describe", open_transaction, "-o", "json").out)
    assert described["partitions"] == [[open_transaction, 0]]
    assert "Ongoing" in penstock("transactions", "describe", open_transaction).out
    assert penstock("transactions", "hanging", open_transaction, "--minutes", "0") == (
        "",
        "Nothing hangs.\n",
        0,
    )
    done = penstock("transactions", "abort", open_transaction, "0", "0", "--yes")
    assert done == ("", f"✓ aborted the transaction at 0 in {open_transaction}-0\n", 0)
    assert penstock("transactions", "describe", "nope").err.startswith(
        "penstock: there is no transactional id 'nope'."
    )
