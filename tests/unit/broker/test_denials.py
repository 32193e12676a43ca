"""What access rules remember of clients, and what they log."""

import asyncio
import logging
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.access import denials
from penstock.broker.access.authorizer import Authorizer
from penstock.broker.access.denials import Denials
from penstock.config.loading import load
from penstock.model.acl import Operation, ResourceType
from penstock.security.principals import Principal

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LONG = "g" * 32_000


def asking(user: str = "eve") -> Any:
    return SimpleNamespace(principal=Principal("User", user), host="10.0.0.9")


def authorizer(loop: asyncio.AbstractEventLoop | None = None) -> Authorizer:
    return Authorizer(load({"authorizer.class.name": STANDARD}, {})[0], loop)


def test_names_that_clients_make_up_are_not_kept() -> None:
    made = authorizer()
    tracemalloc.start()
    try:
        for number in range(300):
            for user, name in (("eve", f"{LONG}{number}"), (f"{LONG}{number}", "g")):
                assert not made.decide(asking(user), Operation.DESCRIBE, ResourceType.GROUP, name).is_allowed
                assert not made.allows_any(asking(user), Operation.WRITE, ResourceType.TOPIC)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1 << 20


def test_a_long_name_is_cut_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "penstock.authorizer"):
        authorizer().allows(asking(LONG), Operation.DESCRIBE, ResourceType.GROUP, LONG)
    (line,) = caplog.messages
    assert len(line) < 700
    assert "(32000 characters)" in line


def test_many_refusals_within_a_second_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        told = Denials(asyncio.get_running_loop())
        for _ in range(1000):
            told.tell("User:eve", "10.0.0.9", Operation.READ, ResourceType.TOPIC, "orders")
        for number in range(1000):
            told.tell("User:bob", "10.0.0.9", Operation.READ, ResourceType.TOPIC, f"t{number}")
        told._timer.cancel()  # type: ignore[union-attr]
        told._sum_up()
        told.tell("User:eve", "10.0.0.9", Operation.READ, ResourceType.TOPIC, "orders")

    with caplog.at_level(logging.INFO, "penstock.authorizer"):
        asyncio.run(story())
    line = "Principal = User:eve is Denied operation = READ from host = 10.0.0.9 on resource = TOPIC:orders"
    assert caplog.messages.count(line) == denials.MOST_EQUAL + 1
    assert "Principal = User:eve is Denied 995 more times within a second" in caplog.messages
    assert "Principal = User:bob is Denied 950 more times within a second" in caplog.messages
    assert len(caplog.messages) == denials.MOST_EQUAL + 1 + denials.MOST_LINES + 2


def test_more_principals_than_have_lines_of_their_own_are_counted_together(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        told = Denials(asyncio.get_running_loop())
        for number in range(denials.MOST_PRINCIPALS + 7):
            told.tell(f"User:{number}", "10.0.0.9", Operation.READ, ResourceType.TOPIC, "orders")
        told._timer.cancel()  # type: ignore[union-attr]
        told._sum_up()

    with caplog.at_level(logging.INFO, "penstock.authorizer"):
        asyncio.run(story())
    assert caplog.messages[-1] == "Principal = (others) is Denied 7 more times within a second"
    assert len(caplog.messages) == denials.MOST_PRINCIPALS + 1
