"""The topic of statuses: how connectors and tasks are, and which topics they have used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

from penstock.connect.state.values import Written

K = TypeVar("K")
V = TypeVar("V")

CONNECTOR: Final = "status-connector-"
TASK: Final = "status-task-"
TOPIC: Final = "status-topic-"
_OF: Final = ":connector-"

UNASSIGNED, RUNNING, PAUSED, STOPPED = "UNASSIGNED", "RUNNING", "PAUSED", "STOPPED"
FAILED, RESTARTING = "FAILED", "RESTARTING"


class Status(NamedTuple):
    state: str
    worker_id: str
    generation: int = 0
    trace: str | None = None
    version: str | None = None

    def value(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "trace": self.trace,
            "worker_id": self.worker_id,
            "generation": self.generation,
            "version": self.version,
        }

    def document(self) -> dict[str, Any]:
        """As the REST API answers it: what is not there is left out."""
        found: dict[str, Any] = {"state": self.state, "worker_id": self.worker_id}
        if self.version is not None:
            found["version"] = self.version
        if self.trace is not None:
            found["trace"] = self.trace
        return found


class StatusState:
    def __init__(self) -> None:
        self.connectors: dict[str, Status] = {}
        self.tasks: dict[str, dict[int, Status]] = {}
        self.topics: dict[str, dict[str, Mapping[str, Any]]] = {}
        """By connector and topic."""
        self.unknown: dict[str, Any] = {}

    def replay(self, key: str, value: Any) -> None:
        try:
            self._replayed(key, value)
        except (KeyError, TypeError, ValueError, AttributeError):
            self.unknown[key] = value

    def _replayed(self, key: str, value: Any) -> None:
        if key.startswith(CONNECTOR):
            name = key.removeprefix(CONNECTOR)
            if value is None:
                self.connectors.pop(name, None)
            else:
                self.connectors[name] = _status(value)
        elif key.startswith(TASK):
            name, _, number = key.removeprefix(TASK).rpartition("-")
            _put(self.tasks, name, int(number), None if value is None else _status(value))
        elif key.startswith(TOPIC) and _OF in key:
            topic, _, name = key.removeprefix(TOPIC).partition(_OF)
            _put(self.topics, name, topic, None if value is None else dict(value["topic"]))
        else:
            self.unknown[key] = value

    def tasks_of(self, name: str) -> dict[int, Status]:
        return dict(sorted(self.tasks.get(name, {}).items()))

    def topics_of(self, name: str) -> list[str]:
        return sorted(self.topics.get(name, {}))


def _put(known: dict[str, dict[K, V]], name: str, key: K, value: V | None) -> None:
    """None takes it away, and nothing stays of a connector of which there is nothing."""
    if value is not None:
        known.setdefault(name, {})[key] = value
    elif name in known:
        known[name].pop(key, None)
        if not known[name]:
            del known[name]


def _status(value: Any) -> Status:
    return Status(
        str(value["state"]),
        str(value["worker_id"]),
        int(value.get("generation", 0)),
        value.get("trace"),
        value.get("version"),
    )


def connector_record(name: str, status: Status | None) -> Written:
    return Written(CONNECTOR + name, None if status is None else status.value())


def task_record(name: str, task: int, status: Status | None) -> Written:
    return Written(f"{TASK}{name}-{task}", None if status is None else status.value())


def topic_record(name: str, topic: str, *, task: int, time_ms: int) -> Written:
    said = {"name": topic, "connector": name, "task": task, "discoverTimestamp": time_ms}
    return Written(f"{TOPIC}{topic}{_OF}{name}", {"topic": said})


def topic_removal(name: str, topic: str) -> Written:
    return Written(f"{TOPIC}{topic}{_OF}{name}", None)
