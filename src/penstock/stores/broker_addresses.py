"""Where the brokers of a cluster are, as ZooKeeper knows it: for commands that are given ZooKeeper's address only.

A session of a moment: it reads `/brokers/ids` and ends. Every wait is bounded by the caller's `timeout_s`.
"""

import json
import logging
from typing import Any

BROKERS = "/brokers/ids"
MAX_BROKERS_ASKED = 8
PLAINTEXT = "PLAINTEXT"

_log = logging.getLogger("penstock.stores.broker_addresses")
_log.setLevel(logging.CRITICAL)  # kazoo tells of every attempt; the caller gets one sentence


class NoAddresses(Exception):
    """ZooKeeper does not answer, or knows no broker. The text is one line for the user."""


def addresses(connect: str, *, timeout_s: float, protocol: str = PLAINTEXT) -> list[str]:
    """`HOST:PORT` of the live brokers' listeners for a security protocol; those of a few suffice to reach the others.

    `connect` is of ZooKeeper's form: HOST:PORT[,HOST:PORT…][/chroot].
    """
    from kazoo.client import KazooClient
    from kazoo.exceptions import AuthFailedError, KazooException, NoNodeError
    from kazoo.handlers.threading import KazooTimeoutError

    try:
        client = KazooClient(hosts=connect, timeout=timeout_s, logger=_log, read_only=True)
    except (ValueError, KazooException) as error:
        raise NoAddresses(
            f"'{connect}' is not an address of ZooKeeper (HOST:PORT[/chroot]): {error}"
        ) from None
    try:
        client.start(timeout=timeout_s)
        registrations = _registrations(client)
    except KazooTimeoutError:
        raise NoAddresses(
            f"ZooKeeper at {connect} does not answer within {timeout_s:g} s: is it running?"
        ) from None
    except NoNodeError:
        raise NoAddresses(f"ZooKeeper at {connect} has no Kafka cluster ({BROKERS} is missing)") from None
    except AuthFailedError:
        raise NoAddresses(f"ZooKeeper at {connect} does not let us in") from None
    except KazooException as error:
        raise NoAddresses(f"ZooKeeper at {connect} cannot be read: {type(error).__name__} {error}") from None
    finally:
        client.stop()
        client.close()
    if not registrations:
        raise NoAddresses(f"ZooKeeper at {connect} knows no live broker: start one first")
    found = [address for one in registrations if (address := listener_address(one, protocol)) is not None]
    if not found:
        raise NoAddresses(f"no broker that ZooKeeper at {connect} knows has a {protocol} listener")
    return found


def _registrations(client: Any) -> list[dict[str, Any]]:
    from kazoo.exceptions import NoNodeError

    found = []
    for broker in sorted(client.get_children(BROKERS), key=lambda name: (len(name), name)):
        try:
            data, _ = client.get(f"{BROKERS}/{broker}")
            registration = json.loads(data)
        except (NoNodeError, ValueError):  # gone since, or not a broker's
            continue
        if isinstance(registration, dict):
            found.append(registration)
        if len(found) == MAX_BROKERS_ASKED:
            break
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
