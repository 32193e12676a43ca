"""The keys for access tokens: fetched seldom, whatever tokens say; one that hangs holds up only who needs it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock.broker.access import bearer_keys
from penstock.broker.access.bearer_keys import MAX_MISSING, BearerKeys
from penstock.credentials.signed_tokens import Key, Keys, NoKeys


class Pages:
    """Stands for the pool and for the server behind it: each fetch waits until it is answered here."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.asked: list[asyncio.Future[Keys]] = []

    def run(self, work: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
        self.asked.append(self._loop.create_future())
        return self.asked[-1]

    def answer(self, *names: str) -> None:
        self.asked[-1].set_result({name: Key(name, ()) for name in names})

    def fail(self) -> None:
        self.asked[-1].set_exception(NoKeys("cannot fetch it: no answer in time"))


def keys_of(pages: Pages, loop: asyncio.AbstractEventLoop) -> BearerKeys:
    pool: Any = pages
    return BearerKeys(loop, pool, "https://login/keys", refresh_s=3600, backoff_s=0.01, max_backoff_s=0.02)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_new_key_is_fetched_once_for_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pages = Pages(loop)
        keys = keys_of(pages, loop)
        keys.start()
        waiting = [loop.create_task(keys.find("a")) for _ in range(50)]
        await asyncio.sleep(0)
        pages.answer("a")
        assert {found.public for found in await asyncio.gather(*waiting) if found} == {"a"}
        assert len(pages.asked) == 1
        monkeypatch.setattr(bearer_keys, "PAUSE_S", 0.0)
        late = [loop.create_task(keys.find("b")) for _ in range(50)]
        await asyncio.sleep(0)
        assert len(pages.asked) == 2
        assert (await keys.find("a")) is not None  # who is known does not wait
        pages.answer("a", "b")
        assert all(await asyncio.gather(*late))
        keys.stop()

    asyncio.run(scenario())


def test_a_flood_of_unknown_names_is_no_flood_of_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pages = Pages(loop)
        keys = keys_of(pages, loop)
        keys.start()
        pages.answer("a")
        await until(lambda: keys._ended_s > 0)
        for number in range(2000):
            assert await keys.find(f"nobody-{number}") is None
        assert len(pages.asked) == 1
        monkeypatch.setattr(bearer_keys, "PAUSE_S", 0.0)
        for number in range(MAX_MISSING + 10):
            waiting = loop.create_task(keys.find(f"nobody-{number}"))
            await asyncio.sleep(0)
            pages.answer("a")
            assert await waiting is None
        fetched = len(pages.asked)
        assert len(keys._missing) == MAX_MISSING
        for number in range(20, 500):
            assert await keys.find(f"nobody-{number}") is None
        assert await keys.find("x" * 1001) is None
        assert len(pages.asked) == fetched
        keys.stop()

    asyncio.run(scenario())


def test_a_server_that_hangs_refuses_only_unknown_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bearer_keys, "PAUSE_S", 0.0)
    monkeypatch.setattr(bearer_keys, "WAIT_S", 0.05)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pages = Pages(loop)
        keys = keys_of(pages, loop)
        keys.start()
        pages.answer("a")
        await until(lambda: keys._ended_s > 0)
        refused = await asyncio.gather(*(keys.find("b") for _ in range(20)))
        assert set(refused) == {None}
        assert len(pages.asked) == 2, "more than one thread is held"
        assert (await keys.find("a")) is not None
        pages.answer("a", "b")
        await until(lambda: keys._fetching is None)
        assert (await keys.find("b")) is not None  # it is not remembered as missing: nobody has said so
        keys.stop()

    asyncio.run(scenario())


def test_a_fetch_that_never_ends_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bearer_keys, "ABANDON_S", 0.05)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pages = Pages(loop)
        keys = keys_of(pages, loop)
        keys.start()
        await until(lambda: len(pages.asked) == 2)
        pages.answer("a")
        await until(lambda: keys._fetching is None)
        assert (await keys.find("a")) is not None
        keys.stop()

    asyncio.run(scenario())


def test_keys_stay_while_new_ones_cannot_be_fetched(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pages = Pages(loop)
        keys = keys_of(pages, loop)
        keys.start()
        for attempt in range(1, 5):
            await until(lambda attempt=attempt: len(pages.asked) == attempt)  # type: ignore[misc]
            pages.fail()
        await until(lambda: len(pages.asked) == 5)
        pages.answer("a")
        await until(lambda: not keys._is_failing)
        assert (await keys.find("a")) is not None
        keys.stop()

    with caplog.at_level("INFO", "penstock.broker.logins"):
        asyncio.run(scenario())
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "sasl.oauthbearer.jwks.endpoint.url: cannot fetch it" in caplog.text
