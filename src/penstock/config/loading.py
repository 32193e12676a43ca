"""Makes a BrokerConfig from given names and values, and reports each name that has no effect."""

from collections.abc import Mapping

from penstock.config.broker_options import BROKER_OPTIONS, listener_option_base
from penstock.config.layers import BrokerConfig
from penstock.config.option import ConfigError
from penstock.config.report import Report


def load(
    properties: Mapping[str, str], sets: Mapping[str, str] | None = None
) -> tuple[BrokerConfig, list[Report]]:
    """`properties` from a file, `sets` from the command line; the latter win. ConfigError for a bad value."""
    static = {**properties, **(sets or {})}
    _take_older_names(static)
    reports = report_names(static)
    _pair_ids(static, sets or {})
    config = BrokerConfig(static)
    _check_listeners_options(static)
    _check_together(config)
    return config, [*reports, *_doubts(config)]


def report_names(names: Mapping[str, str]) -> list[Report]:
    """One report for all that Kafka has and Penstock does not use, and one for each name that nobody has."""
    idle = []
    reports = []
    for name in names:
        option = BROKER_OPTIONS.get(listener_option_base(name) or name)
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
        text = f"options of Kafka that have no effect in Penstock: {', '.join(idle)}"
        reports.insert(0, Report("info", idle[0], text))
    return reports


def _check_listeners_options(static: Mapping[str, str]) -> None:
    """Those with a listener or a mechanism in front have the types of the plain ones."""
    for name, text in static.items():
        base = listener_option_base(name)
        option = BROKER_OPTIONS.get(base) if base is not None else None
        if option is not None and text:
            try:
                option.parse(text)
            except ConfigError as error:
                raise ConfigError(str(error).replace(option.name, name, 1)) from None


def _take_older_names(static: dict[str, str]) -> None:
    older = static.pop("delegation.token.master.key", None)
    if older is not None:
        static.setdefault("delegation.token.secret.key", older)


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
            "broker.id=-1 asks for a generated id, which Penstock does not have: "
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
    if config.is_set("inter.broker.listener.name") and config.is_set("security.inter.broker.protocol"):
        raise ConfigError(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
        )
    queued, largest = config.get("queued.max.request.bytes"), config.get("socket.request.max.bytes")
    if 0 < queued < largest:
        raise ConfigError("queued.max.request.bytes must be larger or equal to socket.request.max.bytes")
    if config.get("max.connections.per.ip") == 0 and not config.get("max.connections.per.ip.overrides"):
        raise ConfigError(
            "max.connections.per.ip can be set to zero only if "
            "max.connections.per.ip.overrides property is set."
        )
    lag_ms, wait_ms = config.get("replica.lag.time.max.ms"), config.get("replica.fetch.wait.max.ms")
    if wait_ms > lag_ms:
        raise ConfigError(
            "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
            "to prevent frequent changes in ISR"
        )
    for kind in ("heartbeat.interval.ms", "session.timeout.ms"):
        least, most = f"group.consumer.min.{kind}", f"group.consumer.max.{kind}"
        if config.get(most) < config.get(least):
            raise ConfigError(f"{most} must be greater than or equal to {least}")
        name = f"group.consumer.{kind}"
        if config.get(name) < config.get(least):
            raise ConfigError(f"{name} must be greater than or equal to {least}")
        if config.get(name) > config.get(most):
            raise ConfigError(f"{name} must be less than or equal to {most}")
    _check_overrides_per_ip(config.get("max.connections.per.ip.overrides"))
    _check_inter_broker_listener(config)


def _check_overrides_per_ip(text: str) -> None:
    for pair in text.split(",") if text.strip() else ():
        host, _, count = pair.strip().rpartition(":")
        if not host or not count.strip().isdecimal():
            raise ConfigError(
                f"max.connections.per.ip.overrides: '{pair.strip()}' is not ADDRESS:COUNT, such as 10.0.0.1:200"
            )


def _check_inter_broker_listener(config: BrokerConfig) -> None:
    """Only what was given: a lone broker whose listener has a login needs no other."""
    listeners = [each.partition("://")[0].strip().upper() for each in config.listeners]
    named = config.get("inter.broker.listener.name")
    if named and named.upper() not in listeners:
        raise ConfigError(
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            f"The valid options based on currently configured listeners are {','.join(listeners)}"
        )
    if config.is_set("security.inter.broker.protocol"):
        wanted = config.get("security.inter.broker.protocol").upper()
        if wanted not in listeners:
            raise ConfigError(
                f"security.inter.broker.protocol is {wanted}, and no listener has that name: listeners={','.join(listeners)}. "
                "Add one, or say inter.broker.listener.name"
            )


def _doubts(config: BrokerConfig) -> list[Report]:
    """What Kafka takes as it is, and what can hardly be meant."""
    doubts = []
    if (
        config.is_set("log.dir")
        and config.is_set("log.dirs")
        and config.get("log.dir") != config.get("log.dirs")
    ):
        doubts.append(Report("warning", "log.dir", "log.dir has no effect: log.dirs is set, too"))
    if config.get("group.max.session.timeout.ms") < config.get("group.min.session.timeout.ms"):
        text = "no member can join a classic group: group.max.session.timeout.ms is less than group.min.session.timeout.ms"
        doubts.append(Report("warning", "group.max.session.timeout.ms", text))
    return doubts
