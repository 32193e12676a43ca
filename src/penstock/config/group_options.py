"""Configs of groups: Kafka 4.3.1's names, types, defaults and checks, the broker options each falls back to, and those that
bound it.

The options of share and streams groups are taken, checked and described like the others; Penstock does not have such groups
yet.
"""

from typing import NamedTuple

from penstock.config.option import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    STRING,
    Check,
    ConfigError,
    Kind,
    Option,
    at_least,
    invalid_value,
    one_of,
)

CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"
PROTOCOLS = (CONSUMER, SHARE, STREAMS)
BY_DURATION = "by_duration:"


class Bounds(NamedTuple):
    """The broker options that an option of a group must stay within; the texts are those of refusals."""

    least: str | None
    most: str | None


def offset_reset() -> Check:
    form = "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'"

    def refusal(name: str, value: str) -> ConfigError | None:
        if value in ("earliest", "latest") or _is_duration(value):
            return None
        why = f"Invalid value `{value}` for configuration {name}. The value must be either {form}."
        return invalid_value(name, value=value, why=why)

    return Check("[earliest, latest, by_duration:PnDTnHnMn.nS]", refusal)


def _is_duration(text: str) -> bool:
    """ISO 8601 as Java's Duration reads it, not negative."""
    import re  # for one option that few set

    if not text.startswith(BY_DURATION):
        return False
    pattern = r"P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d{0,9})?S)?)?"
    return re.fullmatch(pattern, text[len(BY_DURATION) :], re.IGNORECASE) is not None


def _option(
    name: str, kind: Kind, default: object, check: Check | None, doc: str, *, synonym: bool = True
) -> Option:
    return Option(
        name,
        kind,
        default,
        check,
        CLUSTER_WIDE,
        doc,
        honoured=name.startswith(CONSUMER),
        synonyms=((f"group.{name}", 1),) if synonym else (),
    )


_TABLE = (
    _option("consumer.assignment.interval.ms", INT, 1_000, at_least(0),
            "The shortest time between two assignments of the group."),
    _option("consumer.heartbeat.interval.ms", INT, 5_000, at_least(1), "How often its members report."),
    _option("consumer.session.timeout.ms", INT, 45_000, at_least(1),
            "A member silent for this long is removed."),
    _option("share.assignment.interval.ms", INT, 1_000, at_least(0),
            "The shortest time between two assignments of the group."),
    _option("share.auto.offset.reset", STRING, "latest", offset_reset(),
            "Where the group begins in a partition.", synonym=False),
    _option("share.delivery.count.limit", INT, 5, at_least(2), "How often a record is delivered at most."),
    _option("share.heartbeat.interval.ms", INT, 5_000, at_least(1), "How often its members report."),
    _option("share.isolation.level", STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted"),
            "Whether records of transactions that are not committed are delivered.", synonym=False),
    _option("share.partition.max.record.locks", INT, 2_000, at_least(100),
            "How many records of a partition the group may hold locked."),
    _option("share.record.lock.duration.ms", INT, 30_000, at_least(1_000),
            "How long a delivered record stays locked."),
    _option("share.renew.acknowledge.enable", BOOLEAN, True, None,
            "Whether the lock of a record may be renewed.", synonym=False),
    _option("share.session.timeout.ms", INT, 45_000, at_least(1), "A member silent for this long is removed."),
    _option("streams.assignment.interval.ms", INT, 1_000, at_least(0),
            "The shortest time between two assignments of the group."),
    _option("streams.heartbeat.interval.ms", INT, 5_000, at_least(1), "How often its members report."),
    _option("streams.initial.rebalance.delay.ms", INT, 3_000, at_least(0),
            "How long the new group waits for more members before its first assignment."),
    _option("streams.num.standby.replicas", INT, 0, at_least(0), "How many standby replicas each task has."),
    _option("streams.session.timeout.ms", INT, 45_000, at_least(1),
            "A member silent for this long is removed."),
)  # fmt: skip

GROUP_OPTIONS: dict[str, Option] = {option.name: option for option in _TABLE}


def _between(protocol: str, setting: str) -> Bounds:
    return Bounds(f"group.{protocol}.min.{setting}", f"group.{protocol}.max.{setting}")


BOUNDS: dict[str, Bounds] = {
    **{
        f"{protocol}.{setting}": _between(protocol, setting)
        for setting in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
        for protocol in PROTOCOLS
    },
    **{
        f"share.{setting}": _between(SHARE, setting)
        for setting in ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")
    },
    "streams.num.standby.replicas": Bounds(None, "group.streams.max.standby.replicas"),
}
