"""Whether a change of configs is allowed, with Kafka's error messages."""

from collections.abc import Iterable, Mapping

from penstock.config.broker_options import BROKER_OPTIONS, listener_option_base
from penstock.config.group_options import BOUNDS, GROUP_OPTIONS, PROTOCOLS
from penstock.config.known_names import dynamic_names, kafka_names
from penstock.config.layers import BrokerConfig
from penstock.config.option import PER_BROKER, ConfigError
from penstock.config.topic_options import topic_option
from penstock.model.errors import ApiError, ErrorCode

# Listener options that may be set for the whole cluster at once.
_CLUSTER_LEVEL_LISTENER_OPTIONS = ("max.connections", "max.connection.creation.rate", "num.network.threads")


def check_topic_overrides(
    config: BrokerConfig, overrides: Mapping[str, str | None], *, stored: Mapping[str, str] | None = None
) -> None:
    """`overrides` is all that the topic would have afterwards, `stored` what it has already: that is not held against the rest,
    as older releases may have taken it. Raises ApiError(INVALID_CONFIG)."""
    missing = [name for name, text in overrides.items() if text is None]
    if missing:
        raise _refused(f"Null value not supported for topic configs: {','.join(missing)}")
    given = {name: text for name, text in overrides.items() if text is not None}
    for name in given:
        if topic_option(name) is None and name not in (stored or {}):
            raise _refused(f"Unknown topic config name: {name}")
    try:
        for name, text in given.items():
            option = topic_option(name)
            if option is not None and (stored or {}).get(name) != text:
                option.parse(text)
    except ConfigError as error:
        raise _refused(str(error)) from None
    low = config.topic_value(given, "min.compaction.lag.ms")
    high = config.topic_value(given, "max.compaction.lag.ms")
    if low > high:
        raise _refused(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
    if config.topic_value(given, "remote.storage.enable"):
        raise _refused(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


def check_group_overrides(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """`overrides` is all that the group would have afterwards. Raises ApiError(INVALID_CONFIG).

    What the group leaves to the broker's options is not held against it: the broker was started with that.
    """
    for name in overrides:
        if name not in GROUP_OPTIONS:
            raise _refused(f"Unknown group config name: {name}")
    try:
        values = {name: GROUP_OPTIONS[name].parse(text) for name, text in overrides.items()}
    except ConfigError as error:
        raise _refused(str(error)) from None
    for name, value in values.items():
        least, most = BOUNDS.get(name, (None, None))
        if least is not None and value < config.get(least):
            raise _refused(f"{name} must be greater than or equal to {least}")
        if most is not None and value > config.get(most):
            raise _refused(f"{name} must be less than or equal to {most}")
    for protocol in PROTOCOLS:
        session, heartbeat = f"{protocol}.session.timeout.ms", f"{protocol}.heartbeat.interval.ms"
        is_given = session in overrides or heartbeat in overrides
        if is_given and config.group_value(overrides, session) <= config.group_value(overrides, heartbeat):
            raise _refused(f"{session} must be greater than {heartbeat}")


def check_broker_dynamic(configs: Mapping[str, str], *, whole_cluster: bool) -> None:
    """`configs` is all that the layer would hold afterwards; `whole_cluster` for the cluster's default layer.

    Raises ApiError(INVALID_REQUEST), Kafka's answer to a bad broker value (not topic's). A name that Kafka
    does not have passes: it may be a plugin's.
    """
    dynamic = dynamic_names()
    fixed = [name for name in configs if name in kafka_names() and name not in dynamic]
    _refuse_names(fixed, "Cannot update these configs dynamically")
    bare = [name for name in configs if name.startswith("ssl.") and name in dynamic]
    _refuse_names(
        bare, "These security configs can be dynamically updated only per-listener using the listener prefix"
    )
    try:
        for name, text in configs.items():
            option = BROKER_OPTIONS.get(listener_option_base(name) or name)
            if option is not None:
                option.parse(text)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
    if whole_cluster:
        single = [name for name in configs if dynamic.get(name) == PER_BROKER or _is_one_listeners(name)]
        _refuse_names(
            single, "Cannot update these configs at default cluster level, broker id must be specified"
        )
    logins = [name for name in configs if (listener_option_base(name) or name).startswith("sasl.")]
    _refuse_names(logins, "Logins of listeners are read at the start of a broker; put these into its file")


def _is_one_listeners(name: str) -> bool:
    base = listener_option_base(name)
    return base is not None and base not in _CLUSTER_LEVEL_LISTENER_OPTIONS


def _refuse_names(names: Iterable[str], why: str) -> None:
    if listed := ", ".join(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{why}: [{listed}]")


def _refused(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, text)
