"""Where the brokers of a cluster are, as ZooKeeper knows it: for commands that are given ZooKeeper's address only.

A session of a moment: it reads `/brokers/ids` and ends. Every wait is bounded by the caller's `timeout_s`.
"""

import asyncio
import json
from typing import Any

from penstock.metadata.tree import NoNode, StoreUnavailable, TreeError
from penstock.stores.zookeeper import ZooKeeperOptions, ZooKeeperStore

BROKERS = "/brokers/ids"
MAX_BROKERS_ASKED = 8
PLAINTEXT = "PLAINTEXT"


class NoAddresses(Exception):
    """ZooKeeper does not answer, or knows no broker. The text is one line for the user."""


def addresses(connect: str, *, timeout_s: float, protocol: str = PLAINTEXT) -> list[str]:
    """`HOST:PORT` of the live brokers' listeners for a security protocol; those of a few suffice to reach the others.

    `connect` is of ZooKeeper's form: HOST:PORT[,HOST:PORT…][/chroot].
    """
    try:
        registrations = asyncio.run(
            _registrations(ZooKeeperOptions(connect, int(timeout_s * 1000)), timeout_s)
        )
    except NoNode:
        raise NoAddresses(f"ZooKeeper at {connect} has no Kafka cluster ({BROKERS} is missing)") from None
    except (TimeoutError, StoreUnavailable):
        raise NoAddresses(
            f"ZooKeeper at {connect} does not answer within {timeout_s:g} s: is it running?"
        ) from None
    except TreeError as error:
        raise NoAddresses(f"ZooKeeper at {connect} cannot be read: {error}") from None
    if not registrations:
        raise NoAddresses(f"ZooKeeper at {connect} knows no live broker: start one first")
    found = [address for one in registrations if (address := listener_address(one, protocol)) is not None]
    if not found:
        raise NoAddresses(f"no broker that ZooKeeper at {connect} knows has a {protocol} listener")
    return found


async def _registrations(options: ZooKeeperOptions, timeout_s: float) -> list[dict[str, Any]]:
    store = ZooKeeperStore(options, asyncio.get_running_loop())
    found: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(timeout_s):
            await store.reconnect()
            for broker in sorted(await store.children(BROKERS), key=lambda name: (len(name), name)):
                try:
                    registration = json.loads((await store.get(f"{BROKERS}/{broker}")).data)
                except (NoNode, ValueError):  # gone since, or not a broker's
                    continue
                if isinstance(registration, dict):
                    found.append(registration)
                if len(found) == MAX_BROKERS_ASKED:
                    break
    finally:
        await store.close()
    return found


def listener_address(registration: dict[str, Any], protocol: str) -> str | None:
    """`{"endpoints": ["PLAINTEXT://127.0.0.1:9092"], …}` → `127.0.0.1:9092`."""
    protocols = registration.get("listener_security_protocol_map") or {}
    for endpoint in registration.get("endpoints") or ():
        listener, _, address = str(endpoint).partition("://")
        if address and protocols.get(listener, listener) == protocol:
            return address
    if protocol == PLAINTEXT and registration.get("host") and registration.get("port", -1) > 0:
        return f"{registration['host']}:{registration['port']}"
    return None
