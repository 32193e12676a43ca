"""TLS for the listeners that speak it and for connections to other brokers, with certificates that can be renewed meanwhile.

A context is made again when a file of it has changed, which is looked for each CHECK_SECONDS, and when its options change
(`kafka-configs … ssl.keystore.location=…`; the same path again counts). What cannot be read is told in the log, and the
certificate in use stays in use. Connections that are open keep the certificate that they were opened with.

At the start there is none in use: where the options that were set by `kafka-configs` cannot be used, those of the broker's file
are, so that a file that went missing keeps nobody out.
"""

import logging
import os
import ssl
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from penstock.config.layers import BrokerConfig
from penstock.net.listener import Tls
from penstock.runtime.pools import Pools
from penstock.security.principals import parse_name_rules
from penstock.security.tls_context import client_context, principal_of_certificate, server_context

log = logging.getLogger("penstock.broker")

CHECK_SECONDS: Final = 5.0
HANDSHAKE_SECONDS: Final = 10.0
_OPTIONS: Final = ("ssl.",)
_FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")


class _Kept:
    """A context of a listener, and what it was made of."""

    def __init__(
        self,
        what: str,
        listener: str,
        config: BrokerConfig,
        make: Callable[[Mapping[str, str]], ssl.SSLContext],
    ) -> None:
        """ValueError, which names the option, where neither the options in force nor the static ones can be used."""
        self.what = what
        self.listener = listener
        self.make = make
        self.given = given = config.of_listener(listener, _OPTIONS)
        self.stamp = _stamp(given)
        try:
            self.context = make(given)
        except ValueError as error:
            static = config.static_of_listener(listener, _OPTIONS)
            if static == given:
                raise
            try:
                self.context = make(static)
            except ValueError:
                raise error from None
            log.error(
                "%s: what kafka-configs has set cannot be used, so the broker's own options are: %s",
                what,
                error,
            )


class ListenerTls:
    def __init__(self, config: BrokerConfig, loop: AbstractEventLoop, pools: Pools) -> None:
        self._config = config
        self._loop = loop
        self._pools = pools
        self._kept: list[_Kept] = []
        self._timer: TimerHandle | None = None
        self._is_checking = False
        self._is_asked = False
        """Whether all contexts are to be made again, also where nothing looks different."""
        self._is_stopped = False

    def open(self, listener: str) -> Tls:
        """ValueError, which names the option, where this listener cannot speak TLS. Reads files: for the start."""
        rules = parse_name_rules(
            self._config.of_listener(listener, _OPTIONS).get("ssl.principal.mapping.rules", "DEFAULT")
        )
        kept = self._keep(f"listener {listener}", listener, server_context)
        return Tls(
            context=lambda: kept.context,
            identify=partial(principal_of_certificate, rules=rules),
            pool=self._pools.handshakes,
            timeout_s=HANDSHAKE_SECONDS,
        )

    def to_brokers(self, listener: str) -> Callable[[], ssl.SSLContext]:
        """The context for the next connection to another broker's listener of this name. ValueError as above."""
        kept = self._keep("connections to other brokers", listener, client_context)
        return lambda: kept.context

    def _keep(self, what: str, listener: str, make: Callable[[Mapping[str, str]], ssl.SSLContext]) -> _Kept:
        kept = _Kept(what, listener, self._config, make)
        self._kept.append(kept)
        return kept

    def start(self) -> None:
        if self._kept:
            self._timer = self._loop.call_later(CHECK_SECONDS, self._check)

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def configs_changed(self) -> None:
        """Some option of this broker changed, or was set to what it was: all contexts are made again."""
        self._is_asked = True
        if self._kept and not self._is_checking:
            self._begin_check()

    def _check(self) -> None:
        self._timer = self._loop.call_later(CHECK_SECONDS, self._check)
        if not self._is_checking:
            self._begin_check()

    def _begin_check(self) -> None:
        self._is_checking = True
        is_asked, self._is_asked = self._is_asked, False
        wanted = [(kept, self._config.of_listener(kept.listener, _OPTIONS)) for kept in self._kept]
        self._pools.logins.run(self._renew, wanted, is_asked).add_done_callback(self._checked)

    def _checked(self, done: object) -> None:
        self._is_checking = False
        if self._is_asked and not self._is_stopped:
            self._begin_check()

    def _renew(self, wanted: list[tuple[_Kept, dict[str, str]]], is_asked: bool) -> None:
        """In a thread: it reads files."""
        for kept, given in wanted:
            stamp = _stamp(given)
            is_first = is_asked or kept.stamp != stamp
            if not is_first and given == kept.given:
                continue
            kept.stamp, kept.given = stamp, given
            try:
                kept.context = kept.make(given)
            except (ValueError, ssl.SSLError, OSError) as error:
                if is_first:
                    log.error(
                        "%s: the certificate stays, as the new one cannot be used: %s", kept.what, error
                    )
                continue
            log.info("%s: the certificates are read anew", kept.what)


def _stamp(given: dict[str, str]) -> tuple[tuple[int, int, int] | None, ...]:
    """Changes when a file does: a new file in its place, other content, another time."""
    stamps: list[tuple[int, int, int] | None] = []
    for name in _FILES:
        try:
            status = os.stat(given[name])
            stamps.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except (KeyError, OSError):
            stamps.append(None)
    return tuple(stamps)
