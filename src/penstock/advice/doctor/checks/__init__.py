"""The checks by name. Each is a pure function: facts in, findings out. A module for each kind of trouble."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from penstock.advice.doctor.checks import availability, disks, groups, load, safety, shape
from penstock.advice.doctor.facts import Facts
from penstock.advice.doctor.finding import Finding


class Check(NamedTuple):
    name: str
    what: str
    """One line for the help and the docs."""
    parts: tuple[Callable[[Facts], Iterable[Finding]], ...]


ALL: Final = (
    Check("reachable", "each broker answers at the address that it advertises", (availability.reachable,)),
    Check("services", "members of the stack run and are healthy", (availability.services,)),
    Check(
        "replicas", "controller, brokers, leaders and in-sync replicas are there", (availability.replicas,)
    ),
    Check(
        "brokers",
        "log directories, sessions with ZooKeeper, one view of the cluster",
        (availability.brokers,),
    ),
    Check("strays", "logs on disks that belong to no partition there", (availability.strays,)),
    Check("replication", "topics with one replica", (safety.replication_factor,)),
    Check("min-isr", "min.insync.replicas beside the number of replicas", (safety.min_isr,)),
    Check("internal-topics", "offsets and transactions survive a broker", (safety.internal_topics,)),
    Check("racks", "replicas are in several racks", (safety.racks,)),
    Check(
        "settings",
        "unclean elections, default replication, settings that differ",
        (safety.settings, shape.uneven_settings),
    ),
    Check("partitions", "not too many partitions", (load.partition_count,)),
    Check("skew", "replicas, leaders and bytes are spread evenly", (load.skew,)),
    Check("preferred-leaders", "partitions are led by their preferred replica", (load.preferred_leaders,)),
    Check(
        "hot-partitions",
        "no partition gets most of its topic",
        (load.hot_partitions, load.stored_hot_partitions),
    ),
    Check("lag", "groups keep up, and read on where they stopped", (groups.lag, groups.deleted_under)),
    Check("idle-groups", "groups with lag have members", (groups.idle_groups,)),
    Check(
        "disk",
        "disks have space, also by the time that retention deletes",
        (disks.disk, disks.filling, disks.endless),
    ),
    Check("clocks", "brokers' clocks, and records of the future", (shape.clocks, shape.future_records)),
    Check("versions", "brokers understand the same versions", (shape.versions,)),
    Check("security", "listeners on the network ask for TLS and a login", (shape.security,)),
    Check("segments", "segments are not tiny", (shape.segments,)),
    Check("message-size", "max.message.bytes is not huge", (shape.message_size,)),
    Check("permissions", "this login may see everything", (availability.permissions,)),
)

NAMES: Final = tuple(check.name for check in ALL)


def judge(facts: Facts, only: Iterable[str] = ()) -> list[Finding]:
    """What the checks find, or only those named; the most urgent first."""
    wanted = set(only)
    found = [
        finding._replace(check=check.name)
        for check in ALL
        if not wanted or check.name in wanted
        for part in check.parts
        for finding in part(facts)
    ]
    return sorted(found, key=lambda finding: finding.severity.rank)
