"""Key and trust stores that somebody wants to set for this running broker: whether it could use them.

Asked before they are written down. What is stored and cannot be used would be noticed by the next certificate that is not
renewed, or by the next start. Only listeners that the request speaks of are looked at: a file that went missing must not stand in
the way of other changes.
"""

import os
import stat
from collections.abc import Mapping
from typing import Final

from penstock.broker.access.inter_broker import inter_broker_listener
from penstock.config.layers import BrokerConfig
from penstock.net.endpoints import parse_endpoints, security_protocol
from penstock.security.tls_context import client_context, server_context

_PREFIX: Final = "listener.name."
MAX_STORE_BYTES: Final = 16 * 1024 * 1024


def unusable(
    static: Mapping[str, str],
    *,
    cluster_default: Mapping[str, str],
    broker: Mapping[str, str],
    listeners: set[str],
) -> str | None:
    """Why a broker with these layers could not open one of the listeners. It reads files: for a thread."""
    config = BrokerConfig(static)
    config.set_dynamic(cluster_default=cluster_default, broker=broker)
    protocols = config.get("listener.security.protocol.map")
    between_brokers = inter_broker_listener(config) if config.get("zookeeper.connect") else None
    for endpoint in parse_endpoints(",".join(config.listeners), "listeners"):
        name = endpoint.listener
        if name.lower() not in listeners or not security_protocol(name, protocols).endswith("SSL"):
            continue
        given = config.of_listener(name, ("ssl.",))
        try:
            _check_files(given)
            server_context(given)
            if name == between_brokers:
                client_context(given)
        except ValueError as error:
            return f"Invalid value for {_PREFIX}{name.lower()}.{error}"
        except OSError as error:  # OpenSSL's errors are such, too
            return f"The listener {name} could not be opened with these stores: {error.strerror or error}"
    return None


def _check_files(given: Mapping[str, str]) -> None:
    """A pipe or a device would hold the thread for ever. What is not there at all is told by who reads it."""
    for name in ("ssl.keystore.location", "ssl.truststore.location"):
        try:
            status = os.stat(given[name])
        except (KeyError, OSError, ValueError):
            continue
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_STORE_BYTES:
            raise ValueError(f"{name}: '{given[name]}' is not a file, or larger than any store")
