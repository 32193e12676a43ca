"""A network between brokers, and from brokers to ZooKeeper, that can be split: each way is a proxy of its own."""

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from penstock.testing.clusters import HOST
from tests.proxy import Proxy


class Network:
    """For brokers 1 to `brokers`: give `options_of`, `ports` and `zookeeper_connect_of` to their cluster.

    Every broker has a listener for each of the others, which that one takes for its `inter.broker.listener.name`; what
    it advertises there is a proxy. Clients have a listener without one.
    """

    def __init__(self, *, brokers: int, zookeeper: str) -> None:
        ids = range(1, brokers + 1)
        names = ["CLIENTS", *(f"FROM_{broker_id}" for broker_id in ids)]
        protocols = ",".join(f"{name}:PLAINTEXT" for name in names)
        self.ports: list[int] = []
        self.options_of: dict[int, Mapping[str, str]] = {}
        self.zookeeper_connect_of: dict[int, str] = {}
        self._between: dict[tuple[int, int], Proxy] = {}
        self._to_zookeeper: dict[int, Proxy] = {}
        # The brokers' ports are held until the proxies have theirs.
        with ExitStack() as proxies, ExitStack() as held:
            for broker_id in ids:
                sockets = [held.enter_context(socket.create_server((HOST, 0))) for _ in names]
                bound = [f"{HOST}:{each.getsockname()[1]}" for each in sockets]
                advertised = bound[:1]
                for other, address in zip(ids, bound[1:], strict=True):
                    proxy = proxies.enter_context(Proxy(address))
                    self._between[other, broker_id] = proxy
                    advertised.append(proxy.address)
                self.ports.append(sockets[0].getsockname()[1])
                self.options_of[broker_id] = {
                    "listeners": _listeners(names, bound),
                    "advertised.listeners": _listeners(names, advertised),
                    "listener.security.protocol.map": protocols,
                    "inter.broker.listener.name": f"FROM_{broker_id}",
                }
                self._to_zookeeper[broker_id] = proxies.enter_context(Proxy(zookeeper))
                self.zookeeper_connect_of[broker_id] = self._to_zookeeper[broker_id].address
            self._proxies = proxies.pop_all()

    def split(self, one: int, other: int) -> None:
        """Neither hears from the other; both still have everybody else, and ZooKeeper."""
        self._between[one, other].stall()
        self._between[other, one].stall()

    def split_from_zookeeper(self, broker_id: int) -> None:
        self._to_zookeeper[broker_id].stall()

    def heal(self) -> None:
        for proxy in (*self._between.values(), *self._to_zookeeper.values()):
            proxy.heal()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._proxies.close()


def _listeners(names: list[str], addresses: list[str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in zip(names, addresses, strict=True))
