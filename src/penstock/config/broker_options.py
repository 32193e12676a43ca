"""Every broker option that Penstock knows more of than its name, and which of them mean the same setting."""

from penstock.config.cluster_options import CLUSTER_OPTIONS
from penstock.config.coordinator_options import COORDINATOR_OPTIONS
from penstock.config.later_group_options import LATER_GROUP_OPTIONS
from penstock.config.log_options import LOG_OPTIONS
from penstock.config.login_options import LOGIN_OPTIONS
from penstock.config.network_options import NETWORK_OPTIONS
from penstock.config.node_options import NODE_OPTIONS
from penstock.config.option import Option
from penstock.config.own_options import OWN_OPTIONS

BROKER_OPTIONS: dict[str, Option] = {
    option.name: option
    for table in (
        NODE_OPTIONS,
        NETWORK_OPTIONS,
        LOGIN_OPTIONS,
        LOG_OPTIONS,
        COORDINATOR_OPTIONS,
        LATER_GROUP_OPTIONS,
        CLUSTER_OPTIONS,
        OWN_OPTIONS,
    )
    for option in table
}

_ROLL = ("log.roll.ms", "log.roll.hours")
_ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_SYNONYMS = {
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_ROLL_JITTER, _ROLL_JITTER),
    **dict.fromkeys(_RETENTION, _RETENTION),
    # One way only: the scheduler's interval is a default for the other, and keeps its own meaning besides.
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


def broker_synonyms(name: str) -> tuple[str, ...]:
    """The names of one setting, the winner first; a listener's own option falls back to the plain one."""
    synonyms = _SYNONYMS.get(name)
    if synonyms is not None:
        return synonyms
    base = listener_option_base(name)
    return (name,) if base is None else (name, base)


# Set per listener and mechanism: listener.name.<listener>.<mechanism>.<option>, or for all listeners <mechanism>.<option>
_PER_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_MECHANISMS = ("plain.", "scram-sha-256.", "scram-sha-512.", "oauthbearer.", "gssapi.")


def listener_option_base(name: str) -> str | None:
    """`ssl.client.auth` for `listener.name.internal.ssl.client.auth`; None where there is no such prefix. The mechanism of
    a login may be one, too: `sasl.jaas.config` for `plain.sasl.jaas.config`."""
    if not name.startswith("listener.name."):
        base = name.partition(".")[2]
        return base if name.startswith(_MECHANISMS) and base in _PER_MECHANISM else None
    _, dot, base = name[len("listener.name.") :].partition(".")
    if not dot or not base:
        return None
    for per_mechanism in _PER_MECHANISM:
        if base.endswith(per_mechanism):
            return per_mechanism
    return base
