"""The worker's properties, by Kafka's names. What belongs to tasks and their clients is `tasks.settings.WorkerSettings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.errors import BadOption
from penstock.client.group_leadership import GroupOptions
from penstock.client.properties import NAMES
from penstock.config.option import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    READ_ONLY,
    SHORT,
    STRING,
    Option,
    at_least,
    one_of,
)
from penstock.connect.errors import InvalidConfig
from penstock.connect.plugins import EXCLUDED
from penstock.connect.providers import without_limits
from penstock.connect.tasks.settings import WorkerSettings
from penstock.model.endpoints import Address
from penstock.web.options import Listen, Loaded, WebOptions, load

PORT: Final = 8083
MASTER: Final = "penstock.connect.master"
NO_MASTER: Final = "none"
LOCAL: Final = "local"
PROTOCOL_TYPE: Final = "connect"
PROTOCOL: Final = "penstock"
"""Kafka's workers speak other protocols: the coordinator keeps both kinds apart."""

OWN_OPTIONS: Final = (
    Option("bootstrap.servers", LIST, ["localhost:9092"], None, READ_ONLY, "Where the cluster is: HOST:PORT,…"),
    Option("group.id", STRING, "", None, READ_ONLY, "The workers of one name share their connectors."),
    Option("config.storage.topic", STRING, "", None, READ_ONLY, "The topic of configs: one partition, compacted."),
    Option("config.storage.replication.factor", SHORT, 3, None, READ_ONLY, "Copies of it when it is made."),
    Option("offset.storage.topic", STRING, "", None, READ_ONLY, "The topic of the sources' offsets, compacted."),
    Option("offset.storage.replication.factor", SHORT, 3, None, READ_ONLY, "Copies of it when it is made."),
    Option("offset.storage.partitions", INT, 25, None, READ_ONLY, "Its partitions when it is made."),
    Option("offset.storage.file.filename", STRING, "", None, READ_ONLY, "The file of offsets of a standalone worker."),
    Option("status.storage.topic", STRING, "", None, READ_ONLY, "The topic of statuses, compacted."),
    Option("status.storage.replication.factor", SHORT, 3, None, READ_ONLY, "Copies of it when it is made."),
    Option("status.storage.partitions", INT, 5, None, READ_ONLY, "Its partitions when it is made."),
    Option("key.converter", STRING, "", None, READ_ONLY, "The converter of keys where a connector names none."),
    Option("value.converter", STRING, "", None, READ_ONLY, "The converter of values where a connector names none."),
    Option("header.converter", STRING, "", None, READ_ONLY, "The converter of headers where a connector names none."),
    Option("plugin.path", LIST, [], None, READ_ONLY, "Folders with Python modules of connectors, converters and transforms."),
    Option(EXCLUDED, LIST, [], None, READ_ONLY,
           "Plugins that nobody may use, by any of their names: python, which runs any code, or those that reach any file."),
    Option("offset.flush.interval.ms", LONG, 60_000, at_least(1), READ_ONLY, "How often offsets are kept."),
    Option("offset.flush.timeout.ms", LONG, 5000, at_least(1), READ_ONLY, "How long keeping them may take."),
    Option("task.shutdown.graceful.timeout.ms", LONG, 5000, at_least(0), READ_ONLY, "How long a task may take to stop."),
    Option("session.timeout.ms", INT, 10_000, at_least(1), READ_ONLY, "After how long a silent leader is replaced."),
    Option("heartbeat.interval.ms", INT, 3000, at_least(1), READ_ONLY, "How often a worker says that it lives."),
    Option("rebalance.timeout.ms", INT, 60_000, at_least(1), READ_ONLY, "How long the workers may take to find a leader."),
    Option("exactly.once.source.support", STRING, "disabled", one_of("disabled", "preparing", "enabled", any_case=True),
           READ_ONLY,
           "enabled: sources write records and offsets in transactions."),
    Option("connector.client.config.override.policy", STRING, "All", None, READ_ONLY,
           "Which properties of clients connectors may set: All, None, Principal or Allowlist."),
    Option("connector.client.config.override.allowlist", LIST, [], None, READ_ONLY, "Those that Allowlist lets through."),
    Option("topic.creation.enable", BOOLEAN, True, None, READ_ONLY, "Whether sources may have topics made by rules."),
    Option("topic.tracking.enable", BOOLEAN, True, None, READ_ONLY, "Whether it is kept which topics a connector uses."),
    Option("topic.tracking.allow.reset", BOOLEAN, True, None, READ_ONLY, "Whether that may be forgotten on demand."),
    Option("rest.advertised.host.name", STRING, "", None, READ_ONLY, "The host name by which other workers find this one."),
    Option("rest.advertised.port", INT, 0, at_least(0), READ_ONLY, "The port by which they do; 0: that of the listener."),
    Option("rest.advertised.listener", STRING, "", one_of("", "http", "https", any_case=True), READ_ONLY,
           "Which listener they use, by its scheme."),
    Option("admin.listeners", STRING, "", None, READ_ONLY, "Has no effect: /admin is at the other listeners."),
    Option("config.providers", LIST, [], None, READ_ONLY, "Names of providers of values, each with config.providers.NAME.class."),
    Option("errors.restart.enable", BOOLEAN, True, None, READ_ONLY, "Whether tasks and connectors that fail are started again."),
    Option("errors.restart.delay.initial.ms", LONG, 1000, at_least(0), READ_ONLY, "The first pause before it; then it doubles."),
    Option("errors.restart.delay.max.ms", LONG, 300_000, at_least(0), READ_ONLY, "The longest pause."),
    Option("errors.restart.max.attempts", INT, -1, at_least(-1), READ_ONLY, "How often; -1: without end."),
    Option("penstock.inter.worker.user.info", PASSWORD, "", None, READ_ONLY,
           "NAME:PASSWORD with which a worker passes calls on to the leader. Not set: the login of whoever asked."),
    Option(MASTER, STRING, LOCAL, None, READ_ONLY, "The Spark master on which tasks run; none: processes of this machine."),
)  # fmt: skip

WITHOUT_EFFECT: Final = (
    "access.control.", "auto.include.jmx.reporter", "client.dns.lookup", "connect.protocol", "connections.max.idle.ms",
    "inter.worker.", "internal.", "listeners.https.", "metadata.max.age.ms", "metadata.recovery.", "metric.reporters", "metrics.",
    "offset.storage.", "config.storage.", "status.storage.", "plugin.discovery", "rest.extension.classes",
    "response.http.headers.config", "scheduled.rebalance.max.delay.ms", "socket.connection.", "worker.sync.timeout.ms",
    "worker.unsync.backoff.ms", "rest.host.name", "rest.port", "client.id",
)  # fmt: skip
_OTHERS: Final = (
    "producer.", "consumer.", "admin.", "key.converter.", "value.converter.", "header.converter.", "config.providers.",
    "errors.", "topic.creation.", "sasl.", "ssl.", "security.",
)  # fmt: skip


@dataclass(frozen=True)
class WorkerOptions:
    web: WebOptions
    values: Mapping[str, Any]
    worker: WorkerSettings
    is_standalone: bool
    warnings: list[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def group(self) -> GroupOptions:
        return GroupOptions(
            PROTOCOL_TYPE,
            PROTOCOL,
            self.values["group.id"],
            self.values["session.timeout.ms"],
            self.values["heartbeat.interval.ms"],
            self.values["rebalance.timeout.ms"],
        )

    @property
    def graceful_s(self) -> float:
        return float(self.values["task.shutdown.graceful.timeout.ms"]) / 1000


def worker_options(given: Mapping[str, str], *, is_standalone: bool) -> WorkerOptions:
    """BadOption for what cannot be used."""
    required = (
        ("key.converter", "value.converter", "offset.storage.file.filename")
        if is_standalone
        else ("key.converter", "value.converter", "group.id", "config.storage.topic", "offset.storage.topic",
              "status.storage.topic")
    )  # fmt: skip
    for name in required:
        if not given.get(name, "").strip():
            raise BadOption(f'Missing required configuration "{name}" which has no default value.')
    loaded: Loaded = load(
        given,
        OWN_OPTIONS,
        ignored_prefixes=(*WITHOUT_EFFECT, *_OTHERS, *(NAMES & given.keys())),
        default_listener=Listen("http", Address("0.0.0.0", PORT)),
    )
    properties = dict(given)
    if is_standalone:
        # A worker of its own shares nothing, whatever its file says.
        for name in ("group.id", "offset.storage.topic", "exactly.once.source.support"):
            properties.pop(name, None)
    else:
        properties.pop("offset.storage.file.filename", None)
    try:
        worker = WorkerSettings.of(properties)
    except InvalidConfig as error:
        raise BadOption(str(error)) from None
    warnings = [*loaded.warnings, *without_limits(given)]
    return WorkerOptions(loaded.web, loaded.own, worker, is_standalone, warnings)
