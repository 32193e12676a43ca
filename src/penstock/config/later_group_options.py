"""Broker options of share groups and streams groups, which Penstock does not have yet: they bound and complete the configs
of groups, and are described.

Names, types, defaults, checks and whether they may change live are Kafka 4.3.1's.
"""

from penstock.config.option import (
    CLUSTER_WIDE,
    INT,
    INT_MAX,
    LIST,
    READ_ONLY,
    Check,
    Option,
    at_least,
    between,
)


def _share(name: str, default: int, check: Check, doc: str, live: str = READ_ONLY) -> Option:
    return Option(f"group.share.{name}", INT, default, check, live, doc, honoured=False)


def _streams(name: str, default: int, check: Check, doc: str, live: str = READ_ONLY) -> Option:
    return Option(f"group.streams.{name}", INT, default, check, live, doc, honoured=False)


LATER_GROUP_OPTIONS = (
    Option("group.share.assignors", LIST, ["simple"], None, READ_ONLY,
           "The assignor of share groups.", honoured=False),
    _share("assignment.interval.ms", 1_000, at_least(0),
           "The shortest time between two assignments of a share group.", CLUSTER_WIDE),
    _share("delivery.count.limit", 5, between(2, 10), "How many times a record is delivered to a share group at most."),
    _share("heartbeat.interval.ms", 5_000, at_least(1), "How often members of share groups send heartbeats."),
    _share("max.assignment.interval.ms", 15_000, at_least(0),
           "The longest time between two assignments that a share group may be given."),
    _share("max.delivery.count.limit", 10, between(5, 25),
           "The highest limit of deliveries that a share group may be given."),
    _share("max.heartbeat.interval.ms", 15_000, at_least(1),
           "The longest heartbeat interval a share group may be given."),
    _share("max.partition.max.record.locks", 4_000, between(2_000, 20_000),
           "The highest limit of locks for each partition that a share group may be given."),
    _share("max.record.lock.duration.ms", 60_000, between(30_000, 3_600_000),
           "The longest lock of a record that a share group may be given."),
    _share("max.session.timeout.ms", 60_000, at_least(1),
           "The longest session timeout a share group may be given."),
    _share("max.share.sessions", 2_000, at_least(1), "How many share sessions a broker keeps."),
    _share("max.size", 200, between(1, 1_000), "How many members one share group may have."),
    _share("min.assignment.interval.ms", 0, at_least(0),
           "The shortest time between two assignments that a share group may be given."),
    _share("min.delivery.count.limit", 2, between(2, 5),
           "The lowest limit of deliveries that a share group may be given."),
    _share("min.heartbeat.interval.ms", 5_000, at_least(1),
           "The shortest heartbeat interval a share group may be given."),
    _share("min.partition.max.record.locks", 100, between(100, 2_000),
           "The lowest limit of locks for each partition that a share group may be given."),
    _share("min.record.lock.duration.ms", 15_000, between(1_000, 30_000),
           "The shortest lock of a record that a share group may be given."),
    _share("min.session.timeout.ms", 45_000, at_least(1),
           "The shortest session timeout a share group may be given."),
    _share("partition.max.record.locks", 2_000, between(100, 10_000),
           "How many records of a partition may be locked by a share group."),
    _share("record.lock.duration.ms", 30_000, between(1_000, 3_600_000),
           "How long a delivered record stays locked."),
    _share("session.timeout.ms", 45_000, at_least(1), "A member of a share group without a heartbeat for this long is removed."),
    _streams("assignment.interval.ms", 1_000, at_least(0),
             "The shortest time between two assignments of a streams group.", CLUSTER_WIDE),
    _streams("heartbeat.interval.ms", 5_000, at_least(1), "How often members of streams groups send heartbeats."),
    _streams("initial.rebalance.delay.ms", 3_000, at_least(0),
             "How long a new streams group waits for more members before its first assignment."),
    _streams("max.assignment.interval.ms", 15_000, at_least(0),
             "The longest time between two assignments that a streams group may be given."),
    _streams("max.heartbeat.interval.ms", 15_000, at_least(1),
             "The longest heartbeat interval a streams group may be given."),
    _streams("max.session.timeout.ms", 60_000, at_least(1),
             "The longest session timeout a streams group may be given."),
    _streams("max.size", INT_MAX, at_least(1), "How many members one streams group may have."),
    _streams("max.standby.replicas", 2, at_least(0), "The most standby replicas a streams group may be given."),
    _streams("min.assignment.interval.ms", 0, at_least(0),
             "The shortest time between two assignments that a streams group may be given."),
    _streams("min.heartbeat.interval.ms", 5_000, at_least(1),
             "The shortest heartbeat interval a streams group may be given."),
    _streams("min.session.timeout.ms", 45_000, at_least(1),
             "The shortest session timeout a streams group may be given."),
    _streams("num.standby.replicas", 0, at_least(0), "How many standby replicas each task has."),
    _streams("session.timeout.ms", 45_000, at_least(1),
             "A member of a streams group without a heartbeat for this long is removed."),
)  # fmt: skip
