"""penstock dlq: dead letters as penstock.consumer writes them, shown and replayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from penstock.consumer import Poison, Record
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic, delete_topic
from tests.clients.processors import headers, process_all, read_all, values, write
from tests.registry_of_tests import registry_of_tests

Run = Callable[..., Any]
OWN = [("own", b"1")]


@pytest.fixture
def source(broker: PenstockBroker, topic_name: str) -> str:
    """A topic with two partitions whose six records all became dead letters, of two causes in turn."""
    create_topic(broker.bootstrap, topic_name, partitions=2)
    for number in range(6):
        write(broker.bootstrap, topic_name, [(b"k%d" % number, b"v%d" % number)], partition=1, headers=OWN)
    process_all(broker.bootstrap, topic_name, fail, group=f"group-of-{topic_name}", retries=0)
    return topic_name


def fail(record: Record) -> None:
    number = int(record.value[1:])
    if number % 2:
        raise TimeoutError(f"no answer for {number}")
    raise Poison(f"nonsense {number}")


def shown(penstock: Run, topic: str, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(penstock("dlq", "show", topic, "-o", "json", *words).out)
    return found


def test_dead_letters_are_shown_as_a_table(penstock: Run, source: str) -> None:
    done = penstock("dlq", "show", f"{source}.dlq")
    lines = done.out.splitlines()
    assert lines[0].split() == [
        "letter",
        "origin",
        "group",
        "failed",
        "attempts",
        "cause",
        "key",
        "value",
        "replayed",
    ]
    assert len([line for line in lines if source in line]) == 6
    assert "TimeoutError: no answer for 3" in done.out
    assert f"{source} 1/3" in done.out


def test_dead_letters_are_shown_as_json(penstock: Run, source: str) -> None:
    letters = shown(penstock, f"{source}.dlq")
    assert [letter["value"] for letter in letters] == [f"v{number}" for number in range(6)]
    one = letters[1]
    assert (one["key"], one["replayed"]) == ("k1", False)
    assert one["origin"]["topic"] == source
    assert (one["origin"]["partition"], one["origin"]["offset"]) == (1, 1)
    assert one["origin"]["group"] == f"group-of-{source}"
    assert one["origin"]["headers"] == [{"name": "own", "value": "1"}]
    assert (one["failure"]["cause"], one["failure"]["attempts"]) == ("TimeoutError", 1)
    assert "in fail" in one["failure"]["stack"]


def test_dead_letters_are_chosen_by_cause(penstock: Run, source: str) -> None:
    for cause in ("TimeoutError", "timeouterror", "no answer"):
        letters = shown(penstock, f"{source}.dlq", "--cause", cause)
        assert [letter["value"] for letter in letters] == ["v1", "v3", "v5"]
    assert len(shown(penstock, f"{source}.dlq", "--cause", "Poison", "--limit", "2")) == 2
    assert penstock("dlq", "show", f"{source}.dlq", "--cause", "KeyError") == (
        "",
        f"No dead letters in {source}.dlq.\n",
        0,
    )


def test_the_stack_is_shown_on_demand(penstock: Run, source: str) -> None:
    assert "raise TimeoutError" in penstock("dlq", "show", f"{source}.dlq", "--stack").out


def test_a_dry_run_changes_nothing(penstock: Run, broker: PenstockBroker, source: str) -> None:
    done = penstock("dlq", "replay", f"{source}.dlq", "--dry-run")
    assert done == (f"would replay 6 to {source}; 0 left\n", "", 0)
    assert len(read_all(broker.bootstrap, source)) == 6


def test_dead_letters_go_back_to_where_they_came_from_once(
    penstock: Run, broker: PenstockBroker, source: str
) -> None:
    assert penstock("dlq", "replay", f"{source}.dlq") == ("", f"✓ replayed 6 to {source}; 0 left\n", 0)
    replayed = read_all(broker.bootstrap, source)[6:]
    assert [record.value() for record in replayed] == [b"v%d" % number for number in range(6)]
    assert replayed[0].key() == b"k0"
    assert {record.partition() for record in replayed} == {1}
    assert replayed[0].headers() == [*OWN, ("penstock.dlq.earlier-attempts", b"1")]
    assert penstock("dlq", "replay", f"{source}.dlq").err == "✓ replayed nothing; 0 left\n"
    assert all(letter["replayed"] for letter in shown(penstock, f"{source}.dlq"))
    assert shown(penstock, f"{source}.dlq", "--waiting") == []


def test_what_a_choice_leaves_can_be_replayed_later(
    penstock: Run, broker: PenstockBroker, source: str
) -> None:
    first = penstock("dlq", "replay", f"{source}.dlq", "--cause", "TimeoutError", "--limit", "2")
    assert first.err == f"✓ replayed 2 to {source}; the limit is reached\n"
    assert [letter["replayed"] for letter in shown(penstock, f"{source}.dlq")] == [
        False, True, False, True, False, False,
    ]  # fmt: skip
    second = penstock("dlq", "replay", f"{source}.dlq", "--cause", "TimeoutError")
    assert second.err == f"✓ replayed 1 to {source}; 3 left\n"
    assert penstock("dlq", "replay", f"{source}.dlq").err == f"✓ replayed 3 to {source}; 0 left\n"
    expected = [b"v1", b"v3", b"v5", b"v0", b"v2", b"v4"]
    assert values(read_all(broker.bootstrap, source))[6:] == expected


def test_a_letter_that_fails_again_counts_its_attempts_and_is_a_new_letter(
    penstock: Run, broker: PenstockBroker, source: str
) -> None:
    penstock("dlq", "replay", f"{source}.dlq", "--limit", "1")
    process_all(broker.bootstrap, source, fail, group=f"group-of-{source}", retries=0)
    letters = read_all(broker.bootstrap, f"{source}.dlq")
    assert len(letters) == 7
    assert headers(letters[6])["penstock.dlq.attempts"] == "2"
    assert headers(letters[6])["own"] == "1"


def test_dead_letters_can_go_to_another_topic(penstock: Run, broker: PenstockBroker, source: str) -> None:
    other = f"{source}-other"
    done = penstock("dlq", "replay", f"{source}.dlq", "--to", other)
    assert done == ("", f"penstock: there is no topic '{other}' to replay to.\n", 1)
    create_topic(broker.bootstrap, other)
    assert penstock("dlq", "replay", f"{source}.dlq", "--to", other).code == 0
    assert len(read_all(broker.bootstrap, other)) == 6
    assert len(read_all(broker.bootstrap, source)) == 6


def test_the_first_timestamp_can_be_kept(penstock: Run, broker: PenstockBroker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name)
    write(broker.bootstrap, topic_name, [b"v0"], timestamp=1_700_000_000_000)
    process_all(broker.bootstrap, topic_name, fail)
    penstock("dlq", "replay", f"{topic_name}.dlq", "--keep-timestamps")
    assert read_all(broker.bootstrap, topic_name)[1].timestamp()[1] == 1_700_000_000_000


def test_records_that_are_not_dead_letters_are_left_alone(
    penstock: Run, broker: PenstockBroker, source: str
) -> None:
    write(broker.bootstrap, f"{source}.dlq", [b"stray"])
    done = penstock("dlq", "replay", f"{source}.dlq")
    assert done.err.splitlines() == [
        f"✓ replayed 6 to {source}; 0 left",
        "1 records are not dead letters; --to would replay them, too",
    ]
    assert "not a dead letter" in penstock("dlq", "show", f"{source}.dlq").out


def test_a_letter_its_topic_refuses_stays(penstock: Run, broker: PenstockBroker, source: str) -> None:
    small = f"{source}-small"
    create_topic(broker.bootstrap, small, configs={"max.message.bytes": "100"})
    done = penstock("dlq", "replay", f"{source}.dlq", "--to", small)
    assert done.code == 1
    assert f"0 dead letters were replayed, then one could not be written: {small} refused it" in done.err
    assert read_all(broker.bootstrap, small) == []
    assert penstock("dlq", "replay", f"{source}.dlq").err == f"✓ replayed 6 to {source}; 0 left\n"


def test_many_letters_are_replayed_in_several_transactions(
    penstock: Run, broker: PenstockBroker, topic_name: str
) -> None:
    create_topic(broker.bootstrap, topic_name)
    write(broker.bootstrap, topic_name, [b"v%d" % number for number in range(1000)])
    process_all(broker.bootstrap, topic_name, fail, retries=0)
    done = penstock("dlq", "replay", f"{topic_name}.dlq", "--cause", "TimeoutError")
    assert done.err == f"✓ replayed 500 to {topic_name}; 500 left\n"
    penstock("dlq", "replay", f"{topic_name}.dlq")
    counts = sorted(values(read_all(broker.bootstrap, topic_name))[1000:])
    assert counts == sorted(b"v%d" % number for number in range(1000))


def test_what_was_replayed_is_known_after_the_cluster_has_forgotten_the_group(
    penstock: Run, broker: PenstockBroker, source: str
) -> None:
    penstock("dlq", "replay", f"{source}.dlq", "--cause", "TimeoutError", "--limit", "2")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for deleted in admin.delete_consumer_groups(["penstock-dlq-replay"]).values():
        deleted.result(30)
    assert [letter["replayed"] for letter in shown(penstock, f"{source}.dlq")] == [
        False, True, False, True, False, False,
    ]  # fmt: skip
    assert penstock("dlq", "replay", f"{source}.dlq").err == f"✓ replayed 4 to {source}; 0 left\n"
    assert sorted(values(read_all(broker.bootstrap, source))[6:]) == [b"v%d" % number for number in range(6)]


def test_a_topic_that_is_not_there_is_one_line(penstock: Run, topic_name: str) -> None:
    for verb in ("show", "replay"):
        done = penstock("dlq", verb, topic_name)
        assert done == ("", f"penstock: there is no topic '{topic_name}'.\n", 1)


def test_an_open_transaction_of_a_killed_replay_is_ended_by_the_next(
    penstock: Run, broker: PenstockBroker, source: str
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": f"penstock-dlq-replay-{source}.dlq",
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(source, b"half done")
    producer.flush(30)
    assert penstock("dlq", "replay", f"{source}.dlq").err == f"✓ replayed 6 to {source}; 0 left\n"
    assert b"half done" not in values(read_all(broker.bootstrap, source))
    producer.purge()


def test_a_dead_letter_topic_that_is_made_again_is_replayed_from_its_beginning(
    penstock: Run, broker: PenstockBroker, source: str
) -> None:
    assert penstock("dlq", "replay", f"{source}.dlq").err == f"✓ replayed 6 to {source}; 0 left\n"
    delete_topic(broker.bootstrap, f"{source}.dlq")
    process_all(broker.bootstrap, source, fail, group=f"group-of-{source}", retries=0)
    assert penstock("dlq", "replay", f"{source}.dlq").err == f"✓ replayed 6 to {source}; 0 left\n"
    assert penstock("dlq", "replay", f"{source}.dlq").err == "✓ replayed nothing; 0 left\n"


def test_values_are_shown_by_their_schemas_and_those_that_have_none_as_they_are(
    penstock: Run, broker: PenstockBroker, topic_name: str
) -> None:
    create_topic(broker.bootstrap, topic_name)
    with registry_of_tests() as registry:
        framed = b"\0" + registry.register("s", '"string"').to_bytes(4, "big") + b"\x0aninth"
        write(broker.bootstrap, topic_name, [(b"k", framed), (b"k", b"v8")])
        process_all(broker.bootstrap, topic_name, nonsense, group=f"group-of-{topic_name}", retries=0)
        words = ("--value-format", "registry", "--schema-registry-url", registry.url)
        assert [each["value"] for each in shown(penstock, f"{topic_name}.dlq", *words)] == ["ninth", "v8"]
        assert '"ninth"' in penstock("dlq", "show", f"{topic_name}.dlq", *words).out


def nonsense(_: Record) -> None:
    raise Poison("nonsense")
