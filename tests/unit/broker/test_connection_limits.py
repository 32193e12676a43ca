"""Which bounds on connections a listener has."""

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest

from penstock.broker.quotas import named_addresses
from penstock.broker.quotas.connection_limits import limits_of
from penstock.broker.quotas.named_addresses import OPTION, NamedAddresses
from penstock.config.loading import load
from penstock.metadata.image import BROKERS, ConfigsChanged
from penstock.net.admission import UNLIMITED
from penstock.runtime.pools import Pools

LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:1,OUTSIDE://127.0.0.1:2",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
}


PATIENCE_S = 60.0


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_listener_has_its_own_bounds_below_those_of_the_broker() -> None:
    asyncio.run(_bounds_of_listeners())


async def _bounds_of_listeners() -> None:
    config, _ = load(
        {
            **LISTENERS,
            "max.connections": "9",
            "max.connection.creation.rate": "8",
            "listener.name.outside.max.connections": "5",
            "listener.name.outside.max.connection.creation.rate": "4",
            "max.connections.per.ip": "3",
            "max.connections.per.ip.overrides": "10.0.0.1:7, [::1]:6",
        },
        {},
    )
    loop = asyncio.get_running_loop()
    addresses = NamedAddresses(config, loop, Pools(loop).names)
    outside, inside = (
        limits_of(config, "OUTSIDE", None, addresses),
        limits_of(config, "INSIDE", 100, addresses),
    )
    assert (outside.max_connections, outside.creation_rate, outside.is_protected) == (5, 4, False)
    assert (inside.max_connections, inside.creation_rate, inside.is_protected) == (UNLIMITED, UNLIMITED, True)
    for limits in (outside, inside):
        assert (limits.broker_max_connections, limits.broker_creation_rate) == (9, 8)
        assert limits.overrides_per_ip == {"10.0.0.1": 7, "::1": 6}
    assert inside.max_frame_bytes == 100
    assert (outside.login_seconds, inside.login_seconds) == (None, 60.0)


def test_host_names_among_the_exceptions_stand_for_their_addresses(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are looked up by a thread, when the option is read and when it changes."""
    loops: list[bool] = []
    book = {"gateway": ["10.0.0.2", "fd00::2"], "later": ["10.0.0.3"]}

    def resolve(name: str) -> list[str]:
        loops.append(threading.current_thread() is threading.main_thread())
        if name not in book:
            raise OSError(-2, "Name or service not known")
        return book[name]

    async def go() -> None:
        loop = asyncio.get_running_loop()
        config, _ = load({OPTION: "gateway:200, nowhere.example.com:9, 10.0.0.1:7, [0:0::1]:6"}, {})
        addresses = NamedAddresses(config, loop, Pools(loop).names, resolve)
        assert addresses.read() == {"10.0.0.1": 7, "::1": 6}
        await until(lambda: len(addresses.read()) == 4)
        assert addresses.read() == {"10.0.0.1": 7, "::1": 6, "10.0.0.2": 200, "fd00::2": 200}
        (warning,) = [record.getMessage() for record in caplog.records]
        assert warning.startswith(
            f"{OPTION}: the host name nowhere.example.com has no address (Name or service"
        )
        config.put_in_force({OPTION: "later:5"})
        addresses.config_changed(ConfigsChanged(BROKERS, "1", {}))
        await until(lambda: addresses.read() == {"10.0.0.3": 5})
        assert not any(loops)

    with caplog.at_level(logging.WARNING):
        asyncio.run(go())


def test_a_host_name_without_an_address_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def resolve(name: str) -> list[str]:
        asked.append(name)
        if len(asked) == 1:
            raise OSError(-3, "Temporary failure in name resolution")
        return ["10.0.0.2"]

    async def go() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(named_addresses, "AGAIN_SECONDS", 0.01)
        config, _ = load({OPTION: "gateway:200"}, {})
        addresses = NamedAddresses(config, loop, Pools(loop).names, resolve)
        await until(lambda: addresses.read() == {"10.0.0.2": 200})

    asyncio.run(go())
