"""How a plan runs: Kafka Streams' properties, as far as they mean something here, and those of its clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.client.errors import BadOption
from penstock.client.librdkafka_settings import librdkafka_settings

AT_LEAST_ONCE: Final = "at_least_once"
EXACTLY_ONCE: Final = "exactly_once_v2"
GUARANTEES: Final = (AT_LEAST_ONCE, EXACTLY_ONCE)
MEMORY: Final = "memory"
DISK: Final = "disk"
STATE_STORES: Final = (MEMORY, DISK)
EARLIEST: Final = "earliest"
LATEST: Final = "latest"

COMMIT_MS: Final = {AT_LEAST_ONCE: 1000, EXACTLY_ONCE: 100}
MAX_PARALLELISM: Final = 256

_CONSUMER_PREFIXES: Final = ("main.consumer.", "consumer.")
_PRODUCER_PREFIXES: Final = ("producer.",)
_OTHER_PREFIXES: Final = ("restore.consumer.", "global.consumer.", "admin.", "topic.")
_OURS: Final = frozenset(
    {
        "application.id", "processing.guarantee", "commit.interval.ms", "auto.offset.reset", "max.task.idle.ms",
        "buffered.records.per.partition", "replication.factor", "num.stream.threads", "max.poll.interval.ms",
        "state.store", "state.dir", "state.memory.max.bytes",
        *(f"{prefix}max.poll.interval.ms" for prefix in _CONSUMER_PREFIXES),
    }
)  # fmt: skip
# How a Java program keeps its state and caches: nothing is lost without them.
_WITHOUT_EFFECT: Final = frozenset(
    {
        "cache.max.bytes.buffering", "statestore.cache.max.bytes", "num.standby.replicas", "rocksdb.config.setter",
        "topology.optimization", "application.server", "default.key.serde", "default.value.serde", "poll.ms",
        "state.cleanup.delay.ms", "acceptable.recovery.lag", "max.warmup.replicas", "probing.rebalance.interval.ms",
        "default.deserialization.exception.handler", "default.production.exception.handler", "default.timestamp.extractor",
        "default.list.key.serde.inner", "default.list.value.serde.inner", "upgrade.from", "task.timeout.ms",
        "repartition.purge.interval.ms", "windowstore.changelog.additional.retention.ms", "metrics.recording.level",
    }
)  # fmt: skip
# Ours to decide: the guarantees rest on them.
_REFUSED: Final = frozenset(
    {
        "group.id",
        "enable.auto.commit",
        "isolation.level",
        "transactional.id",
        "enable.idempotence",
        "group.instance.id",
    }
)


@dataclass(frozen=True)
class RunOptions:
    application_id: str
    bootstrap: str
    guarantee: str = AT_LEAST_ONCE
    parallelism: int = 1
    auto_offset_reset: str = EARLIEST
    commit_interval_ms: int | None = (
        None  # None: the guarantee's, and earlier where nothing more waits to be read
    )
    max_task_idle_ms: int = 0  # -1: never wait for another topic
    buffered_records: int = 1000
    step_limit_ms: int = 300_000  # a record that takes longer is in a function that never ends
    replication_factor: int | None = None
    is_state_on_disk: bool = False
    state_dir: str | None = None
    memory_max_bytes: int | None = None  # of a task's process; a plan that needs more fails, and says so
    processing_log: str | None = None  # a topic that is told of records that cannot be read or processed
    dead_letters: str | None = None  # a topic for these records themselves
    fails_on_bad_records: bool = False
    security: Mapping[str, str] = field(default_factory=dict)  # and whatever else both kinds of clients take
    consumer: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_exactly_once(self) -> bool:
        return self.guarantee == EXACTLY_ONCE

    @property
    def commit_s(self) -> float:
        given = self.commit_interval_ms
        return (COMMIT_MS[self.guarantee] if given is None else given) / 1000

    def with_parallelism(self, tasks: int) -> RunOptions:
        return replace(self, parallelism=tasks)

    def for_consumer(self) -> dict[str, Any]:
        return self._settings(self.consumer, "consumer")

    def for_producer(self) -> dict[str, Any]:
        return self._settings(self.producer, "producer")

    def _settings(self, own: Mapping[str, str], role: str) -> dict[str, Any]:
        given = {**self.security, **own}
        given.pop("bootstrap.servers", None)
        return {**librdkafka_settings(given, role=role), "bootstrap.servers": self.bootstrap, "log_level": 0}


def run_options(
    application_id: str,
    bootstrap: str,
    properties: Mapping[str, str] | None = None,
    *,
    parallelism: int | None = None,
    guarantee: str | None = None,
    **others: Any,
) -> RunOptions:
    """From Kafka Streams' properties. BadOption, which begins with the name, for a value that cannot be."""
    given = {name.removeprefix("ksql.streams."): str(value) for name, value in (properties or {}).items()}
    chosen: dict[str, Any] = dict(others)
    chosen["guarantee"] = _guarantee(guarantee or given.get("processing.guarantee", AT_LEAST_ONCE))
    chosen["auto_offset_reset"] = _reset(given.get("auto.offset.reset", EARLIEST))
    for name, place, least in (
        ("commit.interval.ms", "commit_interval_ms", 0),
        ("max.task.idle.ms", "max_task_idle_ms", -1),
        ("buffered.records.per.partition", "buffered_records", 1),
        ("replication.factor", "replication_factor", -1),
        ("state.memory.max.bytes", "memory_max_bytes", 1),
        ("max.poll.interval.ms", "step_limit_ms", 1),
        *((f"{prefix}max.poll.interval.ms", "step_limit_ms", 1) for prefix in _CONSUMER_PREFIXES),
    ):
        if name in given:
            chosen[place] = _number(name, given[name], least)
    chosen["is_state_on_disk"] = _is_disk(given.get("state.store", MEMORY))
    chosen["state_dir"] = given.get("state.dir")
    if chosen.get("replication_factor") == -1:
        chosen["replication_factor"] = None
    threads = _number("num.stream.threads", given.get("num.stream.threads", "1"), 1)
    chosen["parallelism"] = min(parallelism or threads, MAX_PARALLELISM)
    both: dict[str, str] = {}
    consumer: dict[str, str] = {}
    producer: dict[str, str] = {}
    for name, value in given.items():
        where, short = _place(name, both=both, consumer=consumer, producer=producer)
        if where is not None:
            if short in _REFUSED:
                raise BadOption(f"{name}: cannot be set, because the guarantees of a running plan rest on it")
            where[short] = value
    found = RunOptions(
        application_id, bootstrap, security=both, consumer=consumer, producer=producer, **chosen
    )
    found.for_consumer(), found.for_producer()
    return found


def _place(
    name: str, *, both: dict[str, str], consumer: dict[str, str], producer: dict[str, str]
) -> tuple[dict[str, str] | None, str]:
    if name in _OURS or name in _WITHOUT_EFFECT or name.startswith(_OTHER_PREFIXES):
        return None, name
    for prefix in _CONSUMER_PREFIXES:
        if name.startswith(prefix):
            return consumer, name.removeprefix(prefix)
    for prefix in _PRODUCER_PREFIXES:
        if name.startswith(prefix):
            return producer, name.removeprefix(prefix)
    return both, name


def _guarantee(given: str) -> str:
    name = given.lower().replace("-", "_")
    if name in ("exactly_once", "exactly_once_beta"):
        name = EXACTLY_ONCE
    if name not in GUARANTEES:
        raise BadOption(f"processing.guarantee: must be {' or '.join(GUARANTEES)}, not '{given}'")
    return name


def _reset(given: str) -> str:
    name = given.lower()
    if name not in (EARLIEST, LATEST):
        raise BadOption(f"auto.offset.reset: must be {EARLIEST} or {LATEST}, not '{given}'")
    return name


def _is_disk(given: str) -> bool:
    if given.lower() not in STATE_STORES:
        raise BadOption(f"state.store: must be {' or '.join(STATE_STORES)}, not '{given}'")
    return given.lower() == DISK


def _number(name: str, given: str, least: int) -> int:
    try:
        number = int(given)
    except ValueError:
        raise BadOption(f"{name}: must be a number, not '{given}'") from None
    if number < least:
        raise BadOption(f"{name}: must be at least {least}, not {given}")
    return number
