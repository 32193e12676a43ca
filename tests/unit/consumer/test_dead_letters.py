import pytest

from penstock.consumer.dead_letters import (
    EARLIER_ATTEMPTS,
    HEADERS_MAX_BYTES,
    DeadLetter,
    Failure,
    dead_letter,
    failure_of,
    parse,
    replay_headers,
    take_earlier_attempts,
)
from penstock.consumer.record import Headers, Record
from tests.unit.consumer.made_records import record

FAILURE = Failure("ValueError", "bad", "a stack", 2, 1000, 2000)


def written_headers(one: Record, failure: Failure = FAILURE) -> Headers:
    output = dead_letter(one, failure, group="billing", to_topic="orders.dlq")
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in output.headers]


def parsed(headers: Headers) -> DeadLetter:
    letter = parse(headers)
    assert letter is not None
    return letter


def test_what_is_written_can_be_read_back() -> None:
    one = record(b"v", key=b"k", offset=7, headers=[("own", b"\xff"), ("own", None)])
    letter = parsed(written_headers(one))
    assert letter == (
        "orders",
        3,
        7,
        1_700_000_000_000,
        "billing",
        FAILURE,
        [("own", b"\xff"), ("own", None)],
    )


def test_key_and_value_are_kept_as_they_came_whatever_a_deserializer_made_of_them() -> None:
    one = record(b"v", key=b"k")
    one.key, one.value = "decoded", {"decoded": True}
    output = dead_letter(one, FAILURE, group="billing", to_topic="orders.dlq")
    assert (output.topic, output.key, output.value) == ("orders.dlq", b"k", b"v")


def test_a_dead_letter_of_a_dead_letter_keeps_the_inner_one() -> None:
    inner = written_headers(record(offset=1))
    outer = parsed(written_headers(record(offset=2, headers=inner)))
    assert outer.offset == 2
    assert outer.headers == inner
    assert parsed(outer.headers).offset == 1


def test_headers_of_others_are_no_dead_letter() -> None:
    assert parse([]) is None
    assert parse([("own", b"1")]) is None
    assert parse([("penstock.dlq.topic", b"orders")]) is None
    spoiled = [
        (name, b"x" if name.endswith("offset") else value) for name, value in written_headers(record())
    ]
    assert parse(spoiled) is None


def test_what_is_added_is_bounded() -> None:
    failure = FAILURE._replace(cause="c" * 10_000, message="ü" * 10_000, stack="€" * 100_000)
    headers = written_headers(record(), failure)
    assert sum(len(name) + len(value or b"") for name, value in headers) < HEADERS_MAX_BYTES
    assert parsed(headers).failure.message.endswith("ü…")
    assert parsed(headers).failure.stack.startswith("…€")


def test_text_that_is_no_text_is_written_all_the_same() -> None:
    headers = written_headers(record(), FAILURE._replace(message="\udcff"))
    assert parsed(headers).failure.message == "\\udcff"


def test_the_end_of_a_long_stack_is_kept() -> None:
    failure = FAILURE._replace(stack="first\n" * 2000 + "last")
    assert parsed(written_headers(record(), failure)).failure.stack.endswith("last")


def test_attempts_before_a_replay_are_counted_on() -> None:
    letter = parsed(written_headers(record(headers=[("own", b"1")])))
    again = record(headers=replay_headers(letter))
    take_earlier_attempts(again)
    assert (again.earlier_attempts, again.headers) == (2, [("own", b"1")])
    assert parsed(written_headers(again)).failure.attempts == 4


@pytest.mark.parametrize("text", [b"", b"-1", b"x", None])
def test_a_count_that_is_no_number_is_zero(text: bytes | None) -> None:
    one = record(headers=[(EARLIER_ATTEMPTS, text)])
    take_earlier_attempts(one)
    assert (one.earlier_attempts, one.headers) == (0, [])


def test_a_failure_names_the_class_the_message_and_the_place() -> None:
    class OwnError(Exception):
        pass

    def handler() -> None:
        raise OwnError("broken")

    try:
        handler()
    except OwnError as error:
        failure = failure_of(error, attempts=1, first_failure_ms=1, last_failure_ms=2)
    assert failure.cause.endswith("OwnError")
    assert failure.message == "broken"
    assert "in handler" in failure.stack
    assert "test_a_failure_names" not in failure.stack.partition("in handler")[0].partition("\n")[2]
