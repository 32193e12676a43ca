"""mm2.properties: clusters, and which flows between them there are. Pure.

    clusters = A, B
    A.bootstrap.servers = a:9092
    B.bootstrap.servers = b:9092
    A->B.enabled = true
    A->B.topics = orders.*

What stands before a name counts more the closer it is: `A->B.topics` over `topics`, `A.security.protocol` over
`security.protocol`. Of two clusters without a flow one gets heartbeats of the other all the same, as in MirrorMaker 2: the flow
in the other direction brings them along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple

from penstock.client.errors import BadOption
from penstock.client.properties import NAMES, SECURITY_NAMES
from penstock.mirror.clusters import BOOTSTRAP
from penstock.mirror.naming import Naming
from penstock.mirror.settings import (
    CHECKPOINT_SETTINGS,
    HEARTBEAT_SETTINGS,
    SOURCE_ALIAS,
    SOURCE_SETTINGS,
    TARGET_ALIAS,
)

JAVA: Final = "org.apache.kafka.connect.mirror."
SOURCE, CHECKPOINT, HEARTBEAT = (
    "MirrorSourceConnector",
    "MirrorCheckpointConnector",
    "MirrorHeartbeatConnector",
)
BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
EXACTLY_ONCE: Final = "exactly.once.source.support"
_TABLES: Final = {SOURCE: SOURCE_SETTINGS, CHECKPOINT: CHECKPOINT_SETTINGS, HEARTBEAT: HEARTBEAT_SETTINGS}
_WORKERS: Final = (
    EXACTLY_ONCE, "offset.flush.interval.ms", "offset.flush.timeout.ms", "offset.storage.replication.factor",
    "offset.storage.partitions", "task.shutdown.graceful.timeout.ms", "plugin.path", "config.providers",
)  # fmt: skip
_COMMON: Final = (
    "tasks.max", "transforms", "predicates", "errors.", "key.converter", "value.converter", "header.converter",
    "transaction.boundary", "config.providers", "producer.", "consumer.", "admin.", "replication.policy.",
)  # fmt: skip

_WITHOUT_EFFECT: Final = (
    "dedicated.mode.enable.internal.rest", "listeners", "rest.", "config.storage.", "status.storage.", "topic.filter.class",
    "group.filter.class", "config.property.filter.class", "forwarding.admin.class", "metric", "offset.lag.max",
    "plugin.discovery", "use.defaults.from", "add.source.alias.to.metrics",
)  # fmt: skip
_NAMES_AT_TOP: Final = ("clusters", "name", "connector.class", "enabled", BOOTSTRAP)


class Flow(NamedTuple):
    """From one cluster to another one."""

    source: str
    target: str
    is_enabled: bool
    """False: heartbeats only."""
    naming: Naming
    worker: Mapping[str, str]
    connectors: Mapping[str, Mapping[str, str]]
    """By name."""

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


def read_flows(given: Mapping[str, str], targets: Iterable[str] = ()) -> list[Flow]:
    """Those into the clusters that are named; all where none is. BadOption."""
    clusters = [one.strip() for one in given.get("clusters", "").split(",") if one.strip()]
    if len(set(clusters)) < 2:
        raise BadOption("clusters: name two or more, such as clusters = A, B")
    wanted = list(targets)
    for name in wanted:
        if name not in clusters:
            raise BadOption(f"--clusters: there is no cluster {name}; there are {', '.join(clusters)}")
    for name in clusters:
        if not given.get(f"{name}.{BOOTSTRAP}", "").strip():
            raise BadOption(f"{name}.{BOOTSTRAP}: say where the cluster {name} is: HOST:PORT,…")
    _check_arrows(given, clusters)
    flows = []
    for source in clusters:
        for target in clusters:
            if source == target or (wanted and target not in wanted):
                continue
            arrow = f"{source}->{target}."
            is_enabled = _flag(given, arrow + "enabled", default=False)
            beats = _flag(
                given,
                arrow + "emit.heartbeats.enabled",
                default=_flag(given, "emit.heartbeats.enabled", default=True),
            )
            if is_enabled or beats:
                flows.append(_flow(given, source, target, is_enabled=is_enabled))
    if not any(flow.is_enabled for flow in flows):
        raise BadOption(f"no flow is enabled: say {clusters[0]}->{clusters[1]}.enabled = true")
    return flows


def warnings_of(given: Mapping[str, str]) -> list[str]:
    """Properties that have no effect here, or that nobody knows, in sentences."""
    clusters = [one.strip() for one in given.get("clusters", "").split(",") if one.strip()]
    known = {
        *NAMES,
        *SECURITY_NAMES,
        *_WORKERS,
        *_NAMES_AT_TOP,
        *(one.name for each in _TABLES.values() for one in each),
    }
    told = []
    for name in given:
        plain = _plain(name, clusters)
        if plain.startswith(_WITHOUT_EFFECT):
            told.append(f"{name} has no effect")
        elif plain not in known and not plain.startswith(_COMMON):
            near = get_close_matches(plain, known, n=1)
            told.append(f"there is no property {name}{f'; did you mean {near[0]}?' if near else ''}")
    return told


def _plain(name: str, clusters: Iterable[str]) -> str:
    """Without what says of which flow, cluster or client it is."""
    if "->" in name:
        name = name.partition("->")[2].partition(".")[2]
    for cluster in clusters:
        name = name.removeprefix(f"{cluster}.")
    for prefix in ("source.", "target.", "cluster.", "consumer.", "producer.", "admin."):
        name = name.removeprefix(prefix)
    return name


def _flow(given: Mapping[str, str], source: str, target: str, *, is_enabled: bool) -> Flow:
    names = (SOURCE, CHECKPOINT, HEARTBEAT) if is_enabled else (HEARTBEAT,)
    connectors = {name: _connector(given, source, target, name) for name in names}
    values = HEARTBEAT_SETTINGS.parse(connectors[HEARTBEAT])
    naming = Naming(
        source,
        target,
        separator=values["replication.policy.separator"],
        separates_internal=values["replication.policy.internal.topic.separator.enabled"],
    )
    own = _cluster(given, target)
    worker = {name: value for name, value in {**given, **own}.items() if name in _WORKERS}
    worker |= {name: value for name, value in own.items() if name in NAMES}
    worker.setdefault("key.converter", BYTES)
    worker.setdefault("value.converter", BYTES)
    worker.setdefault("header.converter", BYTES)
    worker[BOOTSTRAP] = own[BOOTSTRAP]
    worker["group.id"] = f"{source}-mm2"
    worker["offset.storage.topic"] = naming.worker_topic("offsets")
    return Flow(source, target, is_enabled, naming, worker, connectors)


def _connector(given: Mapping[str, str], source: str, target: str, name: str) -> dict[str, str]:
    table = _TABLES[name]
    config = {key: value for key, value in given.items() if key in table or key.startswith(_COMMON)}
    config.pop("enabled", None)
    config |= {f"source.cluster.{key}": value for key, value in _cluster(given, source).items()}
    config |= {f"target.cluster.{key}": value for key, value in _cluster(given, target).items()}
    config |= {
        "name": name,
        "connector.class": JAVA + name,
        SOURCE_ALIAS: source,
        TARGET_ALIAS: target,
        "header.converter": config.get("header.converter", BYTES),
    }
    arrow = f"{source}->{target}."
    config |= {key[len(arrow) :]: value for key, value in given.items() if key.startswith(arrow)}
    config.setdefault("enabled", "false")
    # The heartbeats of a cluster go into its topic `heartbeats`, and that is there whatever else is copied.
    if name == HEARTBEAT:
        config["enabled"] = "true"
    return config


def _cluster(given: Mapping[str, str], name: str) -> dict[str, str]:
    """What is said of one cluster, and of all."""
    shared = {key: value for key, value in given.items() if key in SECURITY_NAMES}
    prefix = f"{name}."
    return shared | {key[len(prefix) :]: value for key, value in given.items() if key.startswith(prefix)}


def _check_arrows(given: Mapping[str, str], clusters: list[str]) -> None:
    for name in given:
        if "->" not in name:
            continue
        source, _, rest = name.partition("->")
        target = rest.partition(".")[0]
        for one in (source, target):
            if one not in clusters:
                raise BadOption(f"{name}: there is no cluster {one} in clusters = {', '.join(clusters)}")


def _flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, "").strip().lower()
    if not text:
        return default
    if text not in ("true", "false"):
        raise BadOption(f"{name}: '{text}' is neither true nor false")
    return text == "true"
