"""penstock.consumer: what each guarantee promises, while everything works and when handlers fail."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.consumer import Backoff, Fenced, HandlerFailed, Output, OutputNotWritten, Processor, Record
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.clients.processors import (
    DEADLINE_S,
    committed,
    is_running,
    process_all,
    read_all,
    running,
    values,
    wait_until,
    write,
)
from tests.conftest import MakeTopic, StartBroker

QUICK = Backoff(0.01, factor=1.0, jitter=0.0)
GUARANTEES = ["at-least-once", "at-most-once", "exactly-once"]


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_every_record_is_handled_once_and_its_output_written(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    write(broker.bootstrap, source, numbers(1000))

    def double(record: Record) -> Output:
        return Output(target, b"%d" % (2 * int(record.value)), key=record.key, headers=[("by", "test")])

    counters = process_all(broker.bootstrap, source, double, guarantee=guarantee)
    assert (counters.handled, counters.outputs, counters.dead_letters) == (1000, 1000, 0)
    written = read_all(broker.bootstrap, target)
    assert sorted(int(value or b"") for value in values(written)) == list(range(0, 2000, 2))
    assert written[0].headers() == [("by", b"test")]
    assert process_all(broker.bootstrap, source, double, guarantee=guarantee).handled == 0


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_handler_may_take_whole_batches(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source, target = make_topic(), make_topic()
    write(broker.bootstrap, source, numbers(100))
    sizes: list[int] = []

    def total(records: list[Record]) -> Output:
        sizes.append(len(records))
        return Output(target, str(sum(int(record.value) for record in records)))

    process_all(broker.bootstrap, source, total, guarantee=guarantee, batch=True, batch_size=30)
    assert sum(sizes) == 100
    assert max(sizes) <= 30
    assert sum(int(value or b"") for value in values(read_all(broker.bootstrap, target))) == 4950


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_handler_that_fails_is_called_again(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source, target = make_topic(), make_topic()
    write(broker.bootstrap, source, numbers(10))
    attempts: list[int] = []

    def fails_twice(record: Record) -> Output:
        if record.value == b"5":
            attempts.append(record.attempt)
            if record.attempt < 3:
                raise RuntimeError("not now")
        return Output(target, record.value)

    counters = process_all(broker.bootstrap, source, fails_twice, guarantee=guarantee, backoff=QUICK)
    assert attempts == [1, 2, 3]
    assert (counters.retries, counters.dead_letters) == (2, 0)
    assert values(read_all(broker.bootstrap, target)) == numbers(10)


def test_at_most_once_never_calls_a_handler_again(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    source = make_topic()
    write(broker.bootstrap, source, numbers(10))
    seen: list[bytes] = []

    def handle(record: Record) -> None:
        seen.append(record.value)
        if record.value == b"5":
            raise RuntimeError("broken")

    counters = process_all(broker.bootstrap, source, handle, guarantee="at-most-once")
    assert seen == numbers(10)
    assert (counters.dead_letters, counters.retries) == (1, 0)
    with pytest.raises(ValueError, match="retries must be 0"):
        process_all(broker.bootstrap, source, handle, guarantee="at-most-once", retries=1)


def test_at_most_once_passes_over_a_record_before_it_is_handled(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source = make_topic()
    group = f"group-of-{source}"
    write(broker.bootstrap, source, numbers(10))
    offsets: list[int] = []

    def handle(record: Record) -> None:
        offsets.append(committed(broker.bootstrap, group, source))

    process_all(broker.bootstrap, source, handle, guarantee="at-most-once", group=group, batch_size=10)
    assert all(offset > place for place, offset in enumerate(offsets))


def test_what_at_most_once_has_not_begun_when_it_stops_is_left_for_the_next(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source = make_topic()
    write(broker.bootstrap, source, numbers(20))
    seen: list[bytes] = []

    def stop_at_five(record: Record) -> None:
        seen.append(record.value)
        if record.value == b"5":
            first.stop()

    options: dict[str, Any] = {"group": f"group-of-{source}", "guarantee": "at-most-once"}
    first = Processor(source, handler=stop_at_five, bootstrap=broker.bootstrap, **options)
    first.run()
    assert seen == numbers(6)
    process_all(broker.bootstrap, source, lambda record: seen.append(record.value), **options)
    assert seen == numbers(20)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_without_a_dead_letter_topic_a_failure_ends_the_processor(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source = make_topic()
    group = f"group-of-{source}"
    write(broker.bootstrap, source, numbers(10))

    def handle(record: Record) -> None:
        if record.value == b"5":
            raise RuntimeError("broken")

    with pytest.raises(HandlerFailed, match="broken") as stopped:
        process_all(
            broker.bootstrap, source, handle, guarantee=guarantee, backoff=QUICK, dead_letter_topic=None
        )
    assert isinstance(stopped.value.__cause__, RuntimeError)
    # At most once, the record that failed is behind us: it was begun.
    assert committed(broker.bootstrap, group, source) == (6 if guarantee == "at-most-once" else 5)


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_slow_handler_that_waits_keeps_its_place_in_the_group(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    # The back-off is three times what the group allows between two polls.
    source = make_topic()
    write(broker.bootstrap, source, numbers(3))
    limits = {"session.timeout.ms": 6000, "max.poll.interval.ms": 6000}
    seen: list[tuple[bytes, int]] = []

    def handle(record: Record) -> None:
        seen.append((record.value, record.attempt))
        if record.value == b"1" and record.attempt == 1:
            raise RuntimeError("not now")

    counters = process_all(
        broker.bootstrap, source, handle, guarantee=guarantee,
        backoff=Backoff(9.0, jitter=0.0), consumer_settings=limits,
    )  # fmt: skip
    assert seen == [(b"0", 1), (b"1", 1), (b"1", 2), (b"2", 1)]
    assert counters.rebalances == 1


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_second_member_takes_its_share_and_nothing_is_handled_twice(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source, target = make_topic(partitions=4), make_topic()
    write(broker.bootstrap, source, numbers(200))

    def handle(record: Record) -> Output:
        return Output(target, record.value)

    options: dict[str, Any] = {"guarantee": guarantee, "group": f"group-of-{source}"}
    with running(broker.bootstrap, source, handle, instance="one", **options) as one:
        wait_until(lambda: one.counters.handled == 200, "the first member handles everything")
        with running(broker.bootstrap, source, handle, instance="two", **options) as two:
            # Its first assignment is empty, until the first member has let go: so there is more until it has had some.
            written = 200
            deadline_s = time.monotonic() + DEADLINE_S
            while two.counters.handled == 0 and time.monotonic() < deadline_s:
                more = [(b"%d" % number, b"%d" % number) for number in range(written, written + 100)]
                write(broker.bootstrap, source, more)
                written += 100
            assert two.counters.handled > 0
            wait_until(
                lambda: one.counters.handled + two.counters.handled >= written, "both have handled everything"
            )
    assert sorted(int(value or b"") for value in values(read_all(broker.bootstrap, target))) == list(
        range(written)
    )


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_rebalance_during_a_back_off_commits_what_is_done(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    write(broker.bootstrap, source, numbers(20), partition=0)
    failing, healed = threading.Event(), threading.Event()

    def handle(record: Record) -> Output:
        if record.value == b"10" and not healed.is_set():
            failing.set()
            raise RuntimeError("not now")
        return Output(target, record.value)

    options: dict[str, Any] = {
        "guarantee": guarantee, "group": f"group-of-{source}", "retries": 1000, "backoff": Backoff(0.2, factor=1.0),
        # The eager protocol takes every partition away in a rebalance, so what is done must be committed then.
        "consumer_settings": {"partition.assignment.strategy": "range"},
    }  # fmt: skip
    with running(broker.bootstrap, source, handle, instance="one", **options):
        assert failing.wait(30)
        with running(broker.bootstrap, source, handle, instance="two", **options) as two:
            wait_until(lambda: two.counters.rebalances > 0, "the second member is there")
            assert committed(broker.bootstrap, options["group"], source) == 10
            healed.set()
            wait_until(
                lambda: committed(broker.bootstrap, options["group"], source) == 20, "all is committed"
            )
    assert values(read_all(broker.bootstrap, target)) == numbers(20)


def test_an_aborted_attempt_leaves_nothing_that_can_be_read(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    # One output of the transaction is too large for its topic, so all of it is undone, and done without it.
    source, target = make_topic(), make_topic(configs={"max.message.bytes": "10000"})
    write(broker.bootstrap, source, numbers(50))

    def handle(record: Record) -> Output:
        large = record.value == b"30"
        return Output(target, bytes(range(256)) * 1000 if large else record.value)

    counters = process_all(
        broker.bootstrap,
        source,
        handle,
        guarantee="exactly-once",
        producer_settings={"compression.type": "none"},
    )
    expected = [value for value in numbers(50) if value != b"30"]
    assert values(read_all(broker.bootstrap, target)) == expected
    assert values(read_all(broker.bootstrap, f"{source}.dlq")) == [b"30"]
    assert counters.dead_letters == 1
    assert counters.aborts > 0


def test_an_output_that_is_too_large_makes_a_dead_letter_and_harms_no_other(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source, target = make_topic(), make_topic(configs={"max.message.bytes": "10000"})
    write(broker.bootstrap, source, numbers(50))

    def handle(record: Record) -> Output:
        large = record.value == b"30"
        return Output(target, bytes(range(256)) * 1000 if large else record.value)

    process_all(broker.bootstrap, source, handle, producer_settings={"compression.type": "none"})
    expected = [value for value in numbers(50) if value != b"30"]
    assert sorted(values(read_all(broker.bootstrap, target)), key=lambda one: int(one or b"")) == expected
    assert values(read_all(broker.bootstrap, f"{source}.dlq")) == [b"30"]


def test_an_older_processor_of_the_same_name_is_shut_out_and_says_so(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source, target = make_topic(), make_topic()
    group = f"group-of-{source}"

    def work_until_shut_out() -> None:
        def handle(record: Record) -> Output:
            return Output(target, record.value)

        with running(broker.bootstrap, source, handle, guarantee="exactly-once", instance="same") as older:
            write(broker.bootstrap, source, [b"1"])
            wait_until(lambda: older.counters.handled == 1, "the older one works")
            newer = Producer(
                {"bootstrap.servers": broker.bootstrap, "log_level": 0, "transactional.id": f"{group}-same"}
            )
            newer.init_transactions(30)
            write(broker.bootstrap, source, [b"2"])
            wait_until(lambda: not is_running(older), "the older one ends")

    with pytest.raises(Fenced, match="`instance`"):
        work_until_shut_out()
    assert values(read_all(broker.bootstrap, target)) == [b"1"]
    assert committed(broker.bootstrap, group, source) == 1


def test_an_output_topic_that_cannot_be_written_to_ends_the_processor(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    source = make_topic()
    write(broker.bootstrap, source, numbers(3))
    group = f"group-of-{source}"
    for guarantee in ("at-least-once", "exactly-once"):
        with pytest.raises(OutputNotWritten, match="no good name"):
            process_all(
                broker.bootstrap, source, lambda record: Output("no good name!", b""), guarantee=guarantee
            )
        assert committed(broker.bootstrap, group, source) < 0


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_processor_can_use_the_consumer_protocol(
    broker: PenstockBroker, make_topic: MakeTopic, guarantee: str
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    write(broker.bootstrap, source, numbers(100))

    def handle(record: Record) -> Output:
        return Output(target, record.value)

    settings = {"group.protocol": "consumer"}
    process_all(broker.bootstrap, source, handle, guarantee=guarantee, consumer_settings=settings)
    assert len(read_all(broker.bootstrap, target)) == 100


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_processor_outlives_its_broker(start_broker: StartBroker, guarantee: str) -> None:
    first = start_broker()
    for topic in ("in", "out"):
        create_topic(first.bootstrap, topic)

    def handle(record: Record) -> Output:
        return Output("out", record.value)

    with running(first.bootstrap, "in", handle, guarantee=guarantee) as processor:
        write(first.bootstrap, "in", [b"before"])
        wait_until(lambda: processor.counters.handled == 1, "the first record is handled")
        first.stop()
        second = start_broker(port=first.port)
        write(second.bootstrap, "in", [b"after"])
        wait_until(lambda: processor.counters.handled == 2, "the second record is handled")
    assert values(read_all(second.bootstrap, "out")) == [b"before", b"after"]
