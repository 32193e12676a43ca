"""The topic of configs: which connectors there are, with which tasks, and whether they shall run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from penstock.connect.state.values import Written

CONNECTOR: Final = "connector-"
TASK: Final = "task-"
COMMIT: Final = "commit-"
TARGET: Final = "target-state-"
RESTART: Final = "restart-connector-"
FENCING: Final = "tasks-fencing-"
LOGGER: Final = "logger-cluster-"
SESSION_KEY: Final = "session-key"

Config = Mapping[str, str]


class Target(StrEnum):
    """What a connector shall do. Kafka knew STOPPED only later: older servers read `state`, later ones `state.v2`."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class Kind(StrEnum):
    """What a record of the topic has changed."""

    CONFIG = "config"
    REMOVED = "removed"
    TASKS = "tasks"
    TARGET = "target"
    RESTART = "restart"
    LOGGER = "logger"
    NOTHING = "nothing"


class Change(NamedTuple):
    kind: Kind
    name: str = ""
    """Of the connector, or of the logger."""


NOTHING: Final = Change(Kind.NOTHING)


class ConfigState:
    def __init__(self) -> None:
        self.connectors: dict[str, Config] = {}
        self.targets: dict[str, Target] = {}
        self.tasks: dict[str, tuple[Config, ...]] = {}
        """Those that were committed."""
        self.inconsistent: set[str] = set()
        """A commit counted tasks that are not there: compaction has taken them, or their writer died. They are made anew."""
        self.fenced_tasks: dict[str, int] = {}
        """How many tasks may have written in transactions since the last fencing."""
        self.loggers: dict[str, str] = {}
        self.session_key: Mapping[str, Any] | None = None
        self.unknown: dict[str, Any] = {}
        self._waiting: dict[str, dict[int, Config]] = {}

    def target(self, name: str) -> Target:
        return self.targets.get(name, Target.STARTED)

    def replay(self, key: str, value: Any) -> Change:
        """What it has changed. A record that does not have the form of its key is kept among the unknown."""
        try:
            return self._replayed(key, value)
        except (KeyError, TypeError, ValueError, AttributeError):
            self.unknown[key] = value
            return NOTHING

    def _replayed(self, key: str, value: Any) -> Change:
        if key == SESSION_KEY:
            self.session_key = value
            return NOTHING
        for prefix, method in _METHODS.items():
            if key.startswith(prefix):
                change: Change = getattr(self, method)(key.removeprefix(prefix), value)
                return change
        self.unknown[key] = value
        return NOTHING

    def _connector(self, name: str, value: Any) -> Change:
        if value is None:
            self.connectors.pop(name, None)
            self.tasks.pop(name, None)
            self._waiting.pop(name, None)
            self.inconsistent.discard(name)
            return Change(Kind.REMOVED, name)
        self.connectors[name] = _config(value["properties"])
        return Change(Kind.CONFIG, name)

    def _task(self, rest: str, value: Any) -> Change:
        name, _, number = rest.rpartition("-")
        task = int(number)
        if value is not None and name:
            self._waiting.setdefault(name, {})[task] = _config(value["properties"])
        return NOTHING

    def _commit(self, name: str, value: Any) -> Change:
        if value is None:
            return NOTHING
        count = int(value["tasks"])
        waiting = self._waiting.pop(name, {})
        before = self.tasks.get(name, ())
        if sorted(waiting) == list(range(count)):
            self.tasks[name] = tuple(waiting[task] for task in range(count))
            self.inconsistent.discard(name)
        elif count <= len(before) and not waiting:
            self.tasks[name] = before[:count]
            self.inconsistent.discard(name)
        else:
            self.tasks[name] = ()
            self.inconsistent.add(name)
        return Change(Kind.TASKS, name)

    def _target(self, name: str, value: Any) -> Change:
        if value is None:
            self.targets.pop(name, None)
        else:
            self.targets[name] = Target(value.get("state.v2") or value["state"])
        return Change(Kind.TARGET, name)

    def _restart(self, name: str, value: Any) -> Change:
        return Change(Kind.RESTART, name)

    def _fencing(self, name: str, value: Any) -> Change:
        if value is None:
            self.fenced_tasks.pop(name, None)
        else:
            self.fenced_tasks[name] = int(value["task-count"])
        return NOTHING

    def _logger(self, name: str, value: Any) -> Change:
        if value is None:
            self.loggers.pop(name, None)
            return NOTHING
        self.loggers[name] = str(value["level"])
        return Change(Kind.LOGGER, name)


_METHODS: Final = {
    RESTART: "_restart",
    CONNECTOR: "_connector",
    FENCING: "_fencing",
    TASK: "_task",
    COMMIT: "_commit",
    TARGET: "_target",
    LOGGER: "_logger",
}


def _config(properties: Any) -> Config:
    return {str(name): text if isinstance(text, str) else str(text) for name, text in properties.items()
            if text is not None}  # fmt: skip


def connector_record(name: str, config: Config) -> Written:
    return Written(CONNECTOR + name, {"properties": dict(config)})


def task_records(name: str, configs: Sequence[Config]) -> list[Written]:
    """The tasks, and behind them the commit by which they count."""
    written = [
        Written(f"{TASK}{name}-{number}", {"properties": dict(config)})
        for number, config in enumerate(configs)
    ]
    return [*written, Written(COMMIT + name, {"tasks": len(configs)})]


def target_record(name: str, target: Target) -> Written:
    known_before = Target.PAUSED if target is Target.STOPPED else target
    return Written(TARGET + name, {"state": known_before.value, "state.v2": target.value})


def removal_records(name: str) -> list[Written]:
    return [Written(CONNECTOR + name, None), Written(TARGET + name, None)]


def restart_record(name: str, *, with_tasks: bool, only_failed: bool) -> Written:
    return Written(RESTART + name, {"include-tasks": with_tasks, "only-failed": only_failed})


def fencing_record(name: str, tasks: int) -> Written:
    return Written(FENCING + name, {"task-count": tasks})


def logger_record(name: str, level: str) -> Written:
    return Written(LOGGER + name, {"level": level})
