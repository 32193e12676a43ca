"""penstock.consumer: what becomes of records that cannot be handled."""

from __future__ import annotations

import json
import logging
import os
import time
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.consumer import Backoff, DeadLetterNotWritten, Output, Poison, Processor, Record
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic, topic_configs
from tests.clients.processors import committed, headers, process_all, read_all, values, write
from tests.conftest import MakeTopic

QUICK = Backoff(0.01, factor=1.0, jitter=0.0)
BOTH = ["at-least-once", "exactly-once"]


def refuse_poison(record: Record) -> None:
    if record.value == b"poison":
        raise LookupError("no such customer: 7")


@pytest.mark.parametrize("guarantee", [*BOTH, "at-most-once"])
def test_a_record_that_fails_for_good_goes_to_the_dead_letter_topic_with_its_story(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source = make_topic(partitions=2)
    own = [("trace", b"\x00\xff"), ("trace", b"2")]
    write(broker.bootstrap, source, [b"a"], partition=1)
    write(
        broker.bootstrap, source, [(b"k", b"poison")], partition=1, headers=own, timestamp=1_700_000_000_000
    )
    write(broker.bootstrap, source, [b"b"], partition=1)
    retries = {} if guarantee == "at-most-once" else {"retries": 2}
    before_ms = time.time() * 1000
    counters = process_all(
        broker.bootstrap,
        source,
        refuse_poison,
        guarantee=guarantee,
        backoff=QUICK,
        group="billing",
        **retries,
    )
    assert (counters.handled, counters.dead_letters) == (3, 1)
    assert committed(broker.bootstrap, "billing", source, 1) == 3
    (letter,) = read_all(broker.bootstrap, f"{source}.dlq")
    assert (letter.key(), letter.value()) == (b"k", b"poison")
    found = letter.headers() or []
    assert list(found)[:2] == own
    told = headers(letter)
    assert told["penstock.dlq.topic"] == source
    assert told["penstock.dlq.partition"] == "1"
    assert told["penstock.dlq.offset"] == "1"
    assert told["penstock.dlq.timestamp"] == "1700000000000"
    assert told["penstock.dlq.group"] == "billing"
    assert told["penstock.dlq.cause"] == "LookupError"
    assert told["penstock.dlq.message"] == "no such customer: 7"
    assert "in refuse_poison" in told["penstock.dlq.stack"]
    assert "consumer/handling" not in told["penstock.dlq.stack"]
    assert told["penstock.dlq.attempts"] == ("1" if guarantee == "at-most-once" else "3")
    first_ms, last_ms = int(told["penstock.dlq.first-failure"]), int(told["penstock.dlq.last-failure"])
    assert before_ms - 1 <= first_ms <= last_ms <= time.time() * 1000


@pytest.mark.parametrize("guarantee", BOTH)
def test_only_the_records_to_blame_leave_a_failing_batch(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source, target = make_topic(), make_topic()
    write(broker.bootstrap, source, [b"1", b"2", b"poison", b"4", b"poison", b"6"])

    def handle(records: list[Record]) -> list[Output]:
        for record in records:
            refuse_poison(record)
        return [Output(target, record.value) for record in records]

    process_all(broker.bootstrap, source, handle, guarantee=guarantee, batch=True, backoff=QUICK, retries=1)
    assert values(read_all(broker.bootstrap, target)) == [b"1", b"2", b"4", b"6"]
    letters = read_all(broker.bootstrap, f"{source}.dlq")
    assert [headers(letter)["penstock.dlq.offset"] for letter in letters] == ["2", "4"]


def test_a_batch_handler_can_name_the_record_that_is_to_blame(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source = make_topic()
    write(broker.bootstrap, source, [b"1", b"poison", b"3"])
    batches: list[list[bytes]] = []

    def handle(records: list[Record]) -> None:
        batches.append([record.value for record in records])
        for record in records:
            if record.value == b"poison":
                raise Poison("known to be bad", record=record)

    # The wait lets all three come together.
    process_all(broker.bootstrap, source, handle, batch=True, batch_size=3, batch_wait_s=5.0)
    assert batches == [[b"1", b"poison", b"3"], [b"1", b"3"]]
    (letter,) = read_all(broker.bootstrap, f"{source}.dlq")
    assert headers(letter)["penstock.dlq.cause"] == "penstock.consumer.failures.Poison"


def test_poison_is_not_tried_again(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    source = make_topic()
    write(broker.bootstrap, source, [b"x"])

    def handle(record: Record) -> None:
        raise Poison("never")

    assert process_all(broker.bootstrap, source, handle).retries == 0
    assert len(read_all(broker.bootstrap, f"{source}.dlq")) == 1


@pytest.mark.parametrize("guarantee", BOTH)
def test_bytes_that_cannot_be_deserialized_are_dead_letters(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source = make_topic()
    write(broker.bootstrap, source, [b'{"id": 1}', b"not json", None, (b"\xff", b"{}")])
    seen: list[Any] = []
    process_all(
        broker.bootstrap, source, lambda record: seen.append((record.key, record.value)), guarantee=guarantee,
        key_deserializer=bytes.decode, value_deserializer=json.loads,
    )  # fmt: skip
    assert seen == [(None, {"id": 1}), (None, None)]
    letters = read_all(broker.bootstrap, f"{source}.dlq")
    assert values(letters) == [b"not json", b"{}"]
    assert letters[1].key() == b"\xff"
    causes = [headers(letter)["penstock.dlq.cause"] for letter in letters]
    assert causes == ["json.decoder.JSONDecodeError", "UnicodeDecodeError"]


@pytest.mark.parametrize("guarantee", BOTH)
def test_a_dead_letter_that_cannot_be_written_stops_the_processor_and_the_record_stays(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source, letters = make_topic(), make_topic(configs={"max.message.bytes": "100"})
    group = f"group-of-{source}"
    write(broker.bootstrap, source, [b"a", b"poison", b"b"])
    options: dict[str, Any] = {"guarantee": guarantee, "backoff": QUICK}
    with pytest.raises(DeadLetterNotWritten, match=letters):
        process_all(broker.bootstrap, source, refuse_poison, dead_letter_topic=letters, **options)
    assert committed(broker.bootstrap, group, source) <= 1
    # The group meets it again, and goes on where a topic takes it.
    process_all(broker.bootstrap, source, refuse_poison, **options)
    assert values(read_all(broker.bootstrap, f"{source}.dlq")) == [b"poison"]


def test_a_dead_letter_topic_that_cannot_be_made_is_told_at_the_start(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source = make_topic()
    with pytest.raises(DeadLetterNotWritten, match=r"no good name! does not exist and cannot be created"):
        process_all(broker.bootstrap, source, refuse_poison, dead_letter_topic="no good name!")


def test_the_dead_letter_topic_has_room_for_the_largest_record_and_our_headers(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source = make_topic(configs={"max.message.bytes": "5000"})
    large = bytes(range(256)) * 19
    write(broker.bootstrap, source, [large])

    def handle(record: Record) -> None:
        raise RuntimeError("x" * 5000)

    process_all(broker.bootstrap, source, handle, retries=0, producer_settings={"compression.type": "none"})
    (letter,) = read_all(broker.bootstrap, f"{source}.dlq")
    assert letter.value() == large
    assert topic_configs(broker.bootstrap, f"{source}.dlq")["max.message.bytes"] == str(5000 + 8192)


def test_a_dead_letter_topic_that_is_there_is_used_as_it_is(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source = make_topic()
    create_topic(broker.bootstrap, f"{source}.dlq", partitions=3)
    write(broker.bootstrap, source, [(b"%d" % number, b"poison") for number in range(30)])
    process_all(broker.bootstrap, source, refuse_poison, retries=0)
    letters = read_all(broker.bootstrap, f"{source}.dlq")
    assert len(letters) == 30
    assert {letter.partition() for letter in letters} == {0, 1, 2}


def test_several_topics_have_dead_letter_topics_of_their_own(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    sources = [make_topic(), make_topic()]
    for source in sources:
        write(broker.bootstrap, source, [b"poison", source.encode()])
    Processor(
        sources,
        handler=refuse_poison,
        group=sources[0],
        bootstrap=broker.bootstrap,
        retries=0,
        stop_at_end=True,
    ).run()
    for source in sources:
        (letter,) = read_all(broker.bootstrap, f"{source}.dlq")
        assert headers(letter)["penstock.dlq.topic"] == source


def test_an_exactly_once_dead_letter_is_in_the_transaction_with_the_offset(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    # The outputs of the same transaction are refused for good, so the dead letter must not be seen either.
    source = make_topic()
    write(broker.bootstrap, source, [b"poison", b"fine"])

    def handle(record: Record) -> Output:
        refuse_poison(record)
        return Output("no good name!", b"")

    with pytest.raises(Exception, match="no good name"):
        process_all(
            broker.bootstrap,
            source,
            handle,
            guarantee="exactly-once",
            retries=0,
            batch_wait_s=1.0,
            batch_size=2,
        )
    assert read_all(broker.bootstrap, f"{source}.dlq") == []


def test_failures_are_logged(
    broker: PenstockBroker, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    source = make_topic()
    write(broker.bootstrap, source, [b"poison"])
    with caplog.at_level(logging.INFO, logger="penstock.consumer"):
        process_all(broker.bootstrap, source, refuse_poison, retries=1, backoff=QUICK)
    assert f"<Record {source}-0@0> failed after 2 attempts and goes to {source}.dlq" in caplog.text


def test_a_replayed_record_remembers_how_often_it_was_tried(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source = make_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    sent = [("own", b"1"), ("penstock.dlq.earlier-attempts", b"4")]
    producer.produce(source, b"poison", headers=sent)
    producer.flush(30)
    seen: list[tuple[int, Any]] = []

    def handle(record: Record) -> None:
        seen.append((record.earlier_attempts, record.headers))
        refuse_poison(record)

    process_all(broker.bootstrap, source, handle, retries=1, backoff=QUICK)
    assert seen == [(4, [("own", b"1")])] * 2
    (letter,) = read_all(broker.bootstrap, f"{source}.dlq")
    assert headers(letter)["penstock.dlq.attempts"] == "6"
    assert "penstock.dlq.earlier-attempts" not in headers(letter)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_pattern_does_not_consume_its_own_dead_letters(
    broker: PenstockBroker, make_topic: MakeTopic, protocol: str
) -> None:
    source = make_topic()
    write(broker.bootstrap, source, [b"poison", b"a"])
    seen: list[tuple[str, bytes]] = []

    def handle(record: Record) -> None:
        seen.append((record.topic, record.value))
        if len(seen) == 1:
            write(broker.bootstrap, source, [b"b"])  # so that the subscription is looked at again
        refuse_poison(record)

    settings = {"group.protocol": protocol, "topic.metadata.refresh.interval.ms": 100}
    for _ in range(2):  # the second finds the dead letter topic from the beginning
        process_all(
            broker.bootstrap,
            f"^{source}.*",
            handle,
            retries=0,
            group=f"pattern-{source}",
            consumer_settings=settings,
        )
    assert seen == [(source, b"poison"), (source, b"a"), (source, b"b")]
    assert len(read_all(broker.bootstrap, f"{source}.dlq")) == 1


def test_an_output_that_is_refused_does_not_repeat_the_others_of_its_record(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source, target, small = make_topic(), make_topic(), make_topic(configs={"max.message.bytes": "2000"})
    write(broker.bootstrap, source, [b"a"])

    def handle(record: Record) -> list[Output]:
        return [Output(target, b"fits"), Output(small, os.urandom(5000))]

    counters = process_all(broker.bootstrap, source, handle, guarantee="at-most-once")
    assert counters.dead_letters == 1
    assert values(read_all(broker.bootstrap, target)) == [b"fits"]
