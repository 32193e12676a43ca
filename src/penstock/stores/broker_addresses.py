"""Where the brokers of a cluster are, as ZooKeeper knows it: for commands that are given ZooKeeper's address only.

A session of a moment: it reads `/brokers/ids` and ends. Every wait is bounded by the caller's `timeout_s`.
"""

import asyncio
import os
from collections.abc import Mapping

from penstock.metadata.image import BrokerRegistration
from penstock.metadata.tree import NoNode, StoreUnavailable, TreeError
from penstock.metadata.znodes import BadNode, decode_broker
from penstock.stores.zookeeper import ZooKeeperOptions, ZooKeeperStore
from penstock.stores.zookeeper_security import security_of

BROKERS = "/brokers/ids"
MAX_BROKERS_ASKED = 8
PLAINTEXT = "PLAINTEXT"


class NoAddresses(Exception):
    """ZooKeeper does not answer, or knows no broker. The text is one line for the user."""


def addresses(
    connect: str, *, timeout_s: float, protocol: str = PLAINTEXT, given: Mapping[str, str] | None = None
) -> list[str]:
    """`HOST:PORT` of the live brokers' listeners for a security protocol; those of a few suffice to reach the others.

    `connect` is of ZooKeeper's form: HOST:PORT[,HOST:PORT…][/chroot]. `given` are options of Kafka that say how ZooKeeper is
    entered (`zookeeper.ssl.…`); ValueError names one that cannot be used.
    """
    options = ZooKeeperOptions(connect, int(timeout_s * 1000), security=security_of(given or {}, os.environ))
    try:
        registrations = asyncio.run(_registrations(options, timeout_s))
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


async def _registrations(options: ZooKeeperOptions, timeout_s: float) -> list[BrokerRegistration]:
    store = ZooKeeperStore(options, asyncio.get_running_loop())
    found: list[BrokerRegistration] = []
    try:
        async with asyncio.timeout(timeout_s):
            await store.reconnect()
            for broker in sorted(await store.children(BROKERS), key=lambda name: (len(name), name)):
                try:
                    found.append(decode_broker(int(broker), (await store.get(f"{BROKERS}/{broker}")).data))
                except (NoNode, BadNode, ValueError):  # gone since, or not a broker's
                    continue
                if len(found) == MAX_BROKERS_ASKED:
                    break
    finally:
        await store.close()
    return found


def listener_address(registration: BrokerRegistration, protocol: str) -> str | None:
    """`HOST:PORT` of the first listener that speaks the security protocol."""
    endpoints = registration.endpoints.values()
    return next((str(each.address) for each in endpoints if each.security_protocol == protocol), None)
