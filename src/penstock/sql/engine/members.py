"""The servers of a service, for /clusterStatus: members of the group in which they agree who runs the queries.

Their addresses are in their client ids, so nobody has to be told of the others, and who has died is gone after the group's
session (10 seconds). Lags are those of the queries' groups in the topics that they read; any server can tell them.
"""

from __future__ import annotations

import logging
import socket
import time
from typing import TYPE_CHECKING, Any, Final

from penstock.client.errors import NoSuchGroup, Refused, Unreachable, UserError
from penstock.model.endpoints import bracketed
from penstock.streams.kernel.topology import cut
from penstock.web.options import Listen

if TYPE_CHECKING:
    from penstock.sql.engine.engine import Engine

log = logging.getLogger("penstock.sql")

CLIENT_ID: Final = "penstock-sql-server@"
WILDCARDS: Final = ("0.0.0.0", "::", "")


def leader_group(command_topic: str) -> str:
    return f"{command_topic}-leader"


def client_id(address: str) -> str:
    return CLIENT_ID + address


def address_of(listen: Listen, host_name: str) -> str:
    """Where others find the server: by `host.name`, by the address that it listens on, or by the machine's name."""
    host, port = listen.address
    return f"{bracketed(host_name or (socket.gethostname() if host in WILDCARDS else host))}:{port}"


def cluster_status(engine: Engine) -> dict[str, Any]:
    """By address. A server that cannot ask the brokers tells of itself."""
    now_ms = int(time.time() * 1000)
    addresses = {engine.address: False}
    try:
        (group,) = engine.cluster.groups.describe(leader_group(engine.options.command_topic))
        for member in group.members:
            if member.client_id.startswith(CLIENT_ID):
                addresses[member.client_id.removeprefix(CLIENT_ID)] = bool(member.assignment)
    except NoSuchGroup:
        pass
    except (UserError, Refused, Unreachable) as error:
        log.warning("The servers of this service are not known: %s", error)
    queries = _queries(engine) if any(addresses.values()) else {}
    lags = {key: lag for found in queries.values() for key, lag in found.pop("lags").items()}
    return {
        address: {
            "hostAlive": True,
            "lastStatusUpdateMs": now_ms,
            "activeStandbyPerQuery": queries if leads else {},
            "hostStoreLags": {
                "stateStoreLags": lags if leads else {},
                "updateTimeMs": now_ms if leads else 0,
            },
        }
        for address, leads in sorted(addresses.items())
    }


def _queries(engine: Engine) -> dict[str, dict[str, Any]]:
    """What the server that leads runs. Of each query its stores and partitions, and how far it is behind in each topic."""
    found = {}
    for query in list(engine.state.queries.values()):
        if query.planned is None:
            continue
        group_id = engine.options.application_id(query.id)
        try:
            (group,) = engine.cluster.groups.lag(group_id)
            parts = group.partitions
        except (UserError, Refused, Unreachable):
            parts = ()  # it has not committed anything yet
        lags: dict[str, dict[str, Any]] = {}
        for part in parts:
            committed = 0 if part.committed is None else part.committed.offset
            end = part.end_offset or 0
            by_partition = lags.setdefault(f"{group_id}#{part.partition.topic}", {"lagByPartition": {}})
            by_partition["lagByPartition"][str(part.partition.partition)] = {
                "currentOffsetPosition": committed,
                "endOffsetPosition": end,
                "offsetLag": max(end - committed, 0),
            }
        found[query.id] = {
            "activeStores": [store.name for each in cut(query.planned.plan) for store in each.stores],
            "activePartitions": [
                {"topic": part.partition.topic, "partition": part.partition.partition} for part in parts
            ],
            "standByStores": [],
            "standByPartitions": [],
            "lags": lags,
        }
    return found
