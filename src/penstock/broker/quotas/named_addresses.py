"""`max.connections.per.ip.overrides`: exceptions for single addresses, which may be given by host names.

Connections are counted by address, so names are looked up by a thread: when the option is read and when it changes. A name counts
for all of its addresses. Until they are known, and where it has none, its clients have `max.connections.per.ip` like others; the
log says so, and the name is looked up again from time to time.
"""

import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from penstock.metadata.image import BROKERS, ConfigsChanged

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from penstock.config.layers import BrokerConfig
    from penstock.runtime.pools import Pool

log = logging.getLogger("penstock.broker")

OPTION: Final = "max.connections.per.ip.overrides"
AGAIN_SECONDS: Final = 60.0
MOST_NAMES: Final = 100
"""Which are looked up; more than that is a mistake."""
Resolve = Callable[[str], list[str]]


def addresses_of(name: str) -> list[str]:
    """In a thread. OSError or UnicodeError where it has none."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(_plain(str(entry[4][0])) for entry in found))


class NamedAddresses:
    def __init__(
        self,
        config: "BrokerConfig",
        loop: "AbstractEventLoop",
        names: "Pool",
        resolve: Resolve = addresses_of,
    ) -> None:
        self._config = config
        self._loop = loop
        self._names = names
        self._resolve = resolve
        self._text: str | None = None
        self._bounds: dict[str, int] = {}
        self._left: dict[str, int] = {}
        """Names whose addresses are not known."""
        self._again_at = 0.0
        self.read()

    def config_changed(self, change: ConfigsChanged) -> None:
        if change.entity_type == BROKERS:
            self.read()

    def read(self) -> Mapping[str, int]:
        """How many connections each address may have for which there is an exception, as far as that is known."""
        text = self._config.get(OPTION)
        if text != self._text:
            self._text = text
            self._bounds, self._left = _pairs(text)
            if len(self._left) > MOST_NAMES:
                log.warning("%s: of %s host names only %s are looked up", OPTION, len(self._left), MOST_NAMES)
                self._left = dict(list(self._left.items())[:MOST_NAMES])
            self._look_up(text, is_first=True)
        elif self._left and self._loop.time() >= self._again_at:
            self._look_up(text, is_first=False)
        return self._bounds

    def _look_up(self, text: str, *, is_first: bool) -> None:
        self._again_at = self._loop.time() + AGAIN_SECONDS
        if self._left:
            found = self._names.run(_all, self._resolve, tuple(self._left))
            found.add_done_callback(partial(self._found, text, is_first=is_first))

    def _found(self, text: str, done: "Future[dict[str, list[str] | str]]", *, is_first: bool) -> None:
        if done.cancelled() or text != self._text:
            return  # the broker stops, or it was changed meanwhile
        addresses = done.result()
        bounds = dict(self._bounds)
        for name, of_name in addresses.items():
            if isinstance(of_name, str):
                if is_first:
                    log.warning(
                        "%s: the host name %s has no address (%s): its clients may have as many connections as "
                        "max.connections.per.ip allows; it is looked up again each minute in which a client connects",
                        OPTION, name, of_name,
                    )  # fmt: skip
                continue
            count = self._left.pop(name)
            for address in of_name:
                bounds.setdefault(address, count)  # an address that is named itself counts first
        self._bounds = bounds


def _pairs(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """By address, and by host name."""
    bounds: dict[str, int] = {}
    names: dict[str, int] = {}
    for pair in text.split(",") if text else ():
        host, _, count = pair.strip().rpartition(":")
        host = host.strip("[] ")
        if host and count.strip().isdecimal():
            try:
                bounds[_plain(host)] = int(count)
            except ValueError:
                names[host] = int(count)
    return bounds, names


def _plain(text: str) -> str:
    """An address as sockets write it. ValueError where it is none."""
    address = ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _all(resolve: Resolve, names: Iterable[str]) -> dict[str, list[str] | str]:
    """In a thread: the addresses of each name, or why there are none."""
    return {name: _one(partial(resolve, name)) for name in names}


def _one(look_up: Callable[[], list[str]]) -> list[str] | str:
    try:
        return look_up() or "none"
    except OSError as error:
        return error.strerror or str(error)
    except UnicodeError:
        return "it cannot be a host name"
