"""From the names and values a person wrote to a BrokerConfig, with a word on each name that has no effect."""

from collections.abc import Mapping
from typing import Final

from penstock.config.broker_options import BROKER_OPTIONS
from penstock.config.layers import BrokerConfig
from penstock.config.option import ConfigError
from penstock.config.report import Report

# Name, the value that asks for nothing, and what others ask for.
_PROTECTIONS: Final = (
    ("authorizer.class.name", "", "access control"),
    ("super.users", "", "access control"),
    ("security.inter.broker.protocol", "PLAINTEXT", "protection between brokers"),
)


def load(
    properties: Mapping[str, str], sets: Mapping[str, str] | None = None
) -> tuple[BrokerConfig, list[Report]]:
    """`properties` from a file, `sets` from the command line; the latter win. ConfigError for a bad value."""
    static = {**properties, **(sets or {})}
    reports = report_names(static)
    _pair_ids(static, sets or {})
    config = BrokerConfig(static)
    _check_together(config)
    _check_protection(config)
    return config, reports


def report_names(names: Mapping[str, str]) -> list[Report]:
    """One report for all that Kafka has and Penstock does not use, and one for each name that nobody has."""
    idle = []
    reports = []
    for name in names:
        option = BROKER_OPTIONS.get(name)
        if option is not None and option.honoured:
            continue
        from penstock.config.known_names import is_known, nearest

        if option is not None or is_known(name):
            idle.append(name)
            continue
        guess = nearest(name)
        hint = f"; did you mean {guess}?" if guess else ""
        reports.append(Report("warning", name, f"unknown option {name} is ignored{hint}"))
    if idle:
        text = f"options of Kafka that have no effect in Penstock yet: {', '.join(idle)}"
        reports.insert(0, Report("info", idle[0], text))
    return reports


def _pair_ids(static: dict[str, str], sets: Mapping[str, str]) -> None:
    """`broker.id` and `node.id` are one number, given or not. -1 ("pick one for me") counts as not given, where there is no
    cluster of other brokers to be unlike.
    """
    undecided = False
    for name in ("broker.id", "node.id"):
        text = static.get(name, "").strip()
        if text == "-1":
            del static[name]
            undecided = True
        elif text.startswith("-"):
            raise ConfigError(f"{name} must be greater than or equal to -1, not {text}")
    given = [name for name in ("node.id", "broker.id") if name in static]
    if undecided and not given and static.get("zookeeper.connect"):
        raise ConfigError(
            "broker.id=-1 asks for an id of ZooKeeper's choice, which Penstock does not have: "
            "give each broker an id of its own (--broker-id)"
        )
    if len(given) == 2 and static["node.id"].strip() != static["broker.id"].strip():
        from_sets = [name for name in given if name in sets]
        if len(from_sets) != 1:
            raise ConfigError(
                "You must set `node.id` to the same value as `broker.id`. "
                f"They are {static['node.id']} and {static['broker.id']}."
            )
        given = from_sets
    number = static[given[0]] if given else str(BROKER_OPTIONS["node.id"].default)
    static["node.id"] = static["broker.id"] = number


def _check_protection(config: BrokerConfig) -> None:
    """An open broker where somebody asked for a closed one is worse than none."""
    for name, open_value, what in _PROTECTIONS:
        text = config.static.get(name, "").strip()
        if text.upper() not in ("", open_value):
            raise ConfigError(
                f"{name}={text} asks for {what}, which Penstock does not have yet: the broker would be open to "
                "everyone. To run it so, remove the entry"
            )


def _check_together(config: BrokerConfig) -> None:
    """What no single option can tell."""
    if config.topic_value({}, "retention.ms") == 0:
        raise ConfigError("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    if config.topic_value({}, "segment.ms") < 1:
        raise ConfigError("log.roll.ms must be greater than or equal to 1")
    if config.topic_value({}, "segment.jitter.ms") < 0:
        raise ConfigError("log.roll.jitter.ms must be greater than or equal to 0")
    if not config.listeners:
        raise ConfigError(
            "There must be at least one broker listener; all appear in controller.listener.names"
        )
    queued, largest = config.get("queued.max.request.bytes"), config.get("socket.request.max.bytes")
    if 0 < queued < largest:
        raise ConfigError("queued.max.request.bytes must be larger or equal to socket.request.max.bytes")
    if config.get("max.connections.per.ip") == 0 and not config.get("max.connections.per.ip.overrides"):
        raise ConfigError(
            "max.connections.per.ip can be set to zero only if "
            "max.connections.per.ip.overrides property is set."
        )
