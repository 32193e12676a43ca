"""How each listener is entered: plainly, by TLS, by a login, or by both.

`open` gives what a listener needs for it. Who came in by a certificate or a login is `connection.principal` from then on.
"""

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.broker.access.bearer_login import BearerLogins
from penstock.broker.access.listener_tls import ListenerTls
from penstock.broker.access.logins import ListenerLogins
from penstock.config.layers import BrokerConfig
from penstock.metadata.image import BROKERS, ConfigsChanged
from penstock.net.connection import Receiver
from penstock.net.endpoints import parse_endpoints, security_protocol
from penstock.net.listener import Tls

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithAnswers,
        WithClock,
        WithConfig,
        WithConfigs,
        WithDecoys,
        WithEffects,
        WithImage,
        WithLoop,
        WithPools,
        WithTokens,
    )

    class Needs(
        WithAnswers,
        WithClock,
        WithConfig,
        WithConfigs,
        WithDecoys,
        WithEffects,
        WithImage,
        WithLoop,
        WithPools,
        WithTokens,
        Protocol,
    ): ...


class Door(NamedTuple):
    receive: Receiver
    tls: Tls | None
    max_frame_bytes: int | None
    """Of a connection that is new; None: as large as any request."""


def asks_for_logins(config: BrokerConfig) -> bool:
    """Whether any listener does. One that cannot be opened is complained of elsewhere."""
    protocol_map = config.get("listener.security.protocol.map")
    try:
        endpoints = parse_endpoints(",".join(config.listeners), "listeners")
        return any(security_protocol(each.listener, protocol_map).startswith("SASL") for each in endpoints)
    except ValueError:
        return False


class Doors:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._tls = ListenerTls(node.config, node.loop, node.pools)
        self._bearers = BearerLogins(node)

    def open(self, listener: str, receive: Receiver) -> Door:
        """`receive` is for those who are let in. ValueError, which names the option, where the listener cannot be opened so.
        Reads files: for the start."""
        node = self._node
        protocol = security_protocol(listener, node.config.get("listener.security.protocol.map"))
        tls = self._tls.open(listener) if protocol.endswith("SSL") else None
        if not protocol.startswith("SASL"):
            return Door(receive, tls, None)
        logins = ListenerLogins(node, listener, receive, self._bearers)
        return Door(logins.receive, tls, logins.max_token_bytes)

    def to_brokers(self, listener: str) -> Callable[[], ssl.SSLContext]:
        """How another broker's listener of this name is entered by TLS, looked up for each connection. ValueError as above."""
        return self._tls.to_brokers(listener)

    def asks_who(self, listener: str) -> bool:
        """Whether clients must prove who they are there: by a login, or by a certificate."""
        config = self._node.config
        protocol = security_protocol(listener, config.get("listener.security.protocol.map"))
        if protocol == "SSL":
            return config.of_listener(listener, ("ssl.",)).get("ssl.client.auth", "none") == "required"
        return protocol.startswith("SASL")

    def start(self) -> None:
        self._node.effects.followers_of_configs.append(self)
        self._node.configs.proposals.stores_named = self._tls.configs_changed
        self._tls.start()

    def stop(self) -> None:
        self._tls.stop()
        self._bearers.stop()

    def config_changed(self, change: ConfigsChanged) -> None:
        if change.entity_type == BROKERS:
            self._tls.configs_changed()
