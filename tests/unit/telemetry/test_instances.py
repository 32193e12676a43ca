from itertools import count
from typing import Any

import pytest

from penstock.model.errors import ApiError, ErrorCode
from penstock.telemetry import instances as module
from penstock.telemetry.instances import ClientInstances
from penstock.telemetry.subscriptions import ClientIdentity, Subscription, read_subscription
from penstock.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from penstock.wire.messages.push_telemetry import PushTelemetryRequest

INTERVAL_MS = 1_000
ME = b"m" * 16
START_MS = 1_000_000


def identify(instance_id: bytes) -> ClientIdentity:
    return ClientIdentity("", "me", None, None, "127.0.0.1", "1")


def subscription(metrics: str = "a.") -> Subscription:
    return read_subscription({"metrics": metrics, "interval.ms": str(INTERVAL_MS)})


def make() -> ClientInstances:
    ids = count(1)
    known = ClientInstances(max_report_bytes=10, new_id=lambda: next(ids).to_bytes(16, "little"))
    known.set_subscriptions([subscription()])
    return known


def ask(known: ClientInstances, now_ms: int, instance_id: bytes = ME) -> GetTelemetrySubscriptionsResponse:
    return known.ask(instance_id, identify, now_ms)


def push(known: ClientInstances, now_ms: int, subscription_id: int, **fields: Any) -> ErrorCode:
    request = PushTelemetryRequest(client_instance_id=ME, subscription_id=subscription_id, metrics=b"x")
    for name, value in fields.items():
        setattr(request, name, value)
    try:
        known.push(request, identify, now_ms)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def throttled(known: ClientInstances, now_ms: int) -> bool:
    try:
        ask(known, now_ms)
    except ApiError as error:
        return error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return False


def test_a_client_without_an_id_gets_one_and_keeps_it() -> None:
    known = make()
    first = ask(known, START_MS, bytes(16))
    assert first.client_instance_id == (1).to_bytes(16, "little")
    assert (first.push_interval_ms, list(first.requested_metrics)) == (INTERVAL_MS, ["a."])
    assert list(first.accepted_compression_types) == [4, 3, 1, 2]
    assert (first.telemetry_max_bytes, first.delta_temporality) == (10, False)
    again = ask(known, START_MS + INTERVAL_MS, first.client_instance_id)
    assert again.client_instance_id == first.client_instance_id
    assert len(known) == 1


def test_every_broker_gives_a_client_the_same_subscription_id_and_each_client_another() -> None:
    here, there = ask(make(), START_MS), ask(make(), START_MS + 5)
    assert here.subscription_id == there.subscription_id
    assert ask(make(), START_MS, b"n" * 16).subscription_id != here.subscription_id
    assert -(2**31) <= here.subscription_id < 2**31


def test_who_asks_before_the_interval_is_over_is_throttled() -> None:
    known = make()
    assert not throttled(known, START_MS)
    assert throttled(known, START_MS + INTERVAL_MS - 1)
    assert not throttled(known, START_MS + INTERVAL_MS)
    assert known.throttled == 1


def test_a_push_follows_each_answer_at_once_and_then_once_in_an_interval() -> None:
    known = make()
    told = ask(known, START_MS).subscription_id
    assert push(known, START_MS, told) is ErrorCode.NONE  # within one millisecond
    assert push(known, START_MS, told) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(known, START_MS + INTERVAL_MS, told) is ErrorCode.NONE


def test_a_changed_subscription_is_an_unknown_one_and_may_be_asked_for_at_once() -> None:
    known = make()
    old = ask(known, START_MS).subscription_id
    assert push(known, START_MS + 1, old) is ErrorCode.NONE
    known.set_subscriptions([subscription("b.")])
    assert push(known, START_MS + 2, old) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    new = ask(known, START_MS + 3)
    assert list(new.requested_metrics) == ["b."]
    assert push(known, START_MS + 4, new.subscription_id) is ErrorCode.NONE
    assert known.unknown_subscriptions == 1


def test_a_change_of_what_others_are_subscribed_to_leaves_a_client_alone() -> None:
    known = make()
    told = ask(known, START_MS).subscription_id
    other = read_subscription({"metrics": "z.", "match": "client_id=other"})
    known.set_subscriptions([subscription(), other])
    assert throttled(known, START_MS + 1)
    assert push(known, START_MS + 2, told) is ErrorCode.NONE


def test_a_terminating_client_pushes_once_more_and_never_again() -> None:
    known = make()
    told = ask(known, START_MS).subscription_id
    assert push(known, START_MS + 1, told) is ErrorCode.NONE
    assert push(known, START_MS + 2, told, terminating=True) is ErrorCode.NONE
    assert push(known, START_MS + 3, told, terminating=True) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * 11}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"client_instance_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"client_instance_id": bytes(15) + b"\1"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_taken_is_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    known = make()
    told = ask(known, START_MS).subscription_id
    assert push(known, START_MS + 1, told, **fields) is code
    if code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
        assert not throttled(known, START_MS + 2)


def test_a_client_that_comes_from_another_broker_may_push_at_once() -> None:
    told = ask(make(), START_MS).subscription_id
    assert push(make(), START_MS + 1, told) is ErrorCode.NONE


def test_a_silent_client_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    known = make()
    ask(known, START_MS)
    ask(known, START_MS + module.MIN_EXPIRY_MS - 1, b"n" * 16)
    assert len(known) == 2
    ask(known, START_MS + module.MIN_EXPIRY_MS, b"o" * 16)
    assert len(known) == 2


def test_there_is_a_bound_on_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_INSTANCES", 3)
    known = make()
    for number in range(10):
        ask(known, START_MS, bytes([number + 2]) * 16)
    assert len(known) == 3
