"""What the Connect screens ask of a worker: ours, or Kafka Connect's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from penstock.client.connect_workers import ConnectWorkers, path_of
from penstock.client.errors import Refused
from penstock.console.upstream.asking import TIMEOUT_S

HIDDEN: Final = "••••••"
SECRET: Final = re.compile(
    r"password|passwd|secret|token|credential|jaas|private\.?key|api\.?key|access\.?key", re.IGNORECASE
)
MAX_VALUE_CHARS: Final = 4000
_LOGIN: Final = re.compile(r"//[^/@\s]+@")
_IN_QUERY: Final = re.compile(r"\b(password|pwd|secret|token)=[^&;\s]*", re.IGNORECASE)
RUNNING: Final = "RUNNING"
FAILED: Final = "FAILED"
UNASSIGNED: Final = "UNASSIGNED"
CHANGE_TIMEOUT_S: Final = 60.0
"""A worker may have to wait for its group, or ask another one."""
VALIDATION_TIMEOUT_S: Final = 30.0
"""A connector may look at its database while its settings are checked."""


class Task(NamedTuple):
    number: int
    state: str
    worker: str
    trace: str


class ConnectorRow(NamedTuple):
    name: str
    kind: str
    """source or sink."""
    class_name: str
    state: str
    worker: str
    trace: str
    tasks: tuple[Task, ...]
    topics: tuple[str, ...]
    config: Mapping[str, str]

    @property
    def failed_tasks(self) -> int:
        return sum(task.state == FAILED for task in self.tasks)


class PluginClass(NamedTuple):
    name: str
    kind: str
    version: str


class Field(NamedTuple):
    """A setting of a connector, as a form shows it."""

    name: str
    label: str
    kind: str
    """STRING, PASSWORD, INT, LONG, SHORT, DOUBLE, BOOLEAN, LIST or CLASS."""
    group: str
    order: int
    importance: str
    default: str | None
    is_required: bool
    documentation: str
    value: str | None
    choices: tuple[str, ...]
    errors: tuple[str, ...]
    is_visible: bool


class Verdict(NamedTuple):
    """What a worker says of a configuration."""

    fields: tuple[Field, ...]
    groups: tuple[str, ...]
    error_count: int


class ConnectServer:
    """Safe to share between threads; calls block for no longer than their deadlines."""

    def __init__(self, url: str, *, authority: str | None = None) -> None:
        """`authority`: a PEM file, by which the certificate of https is checked; None: by what the system trusts."""
        self._workers = ConnectWorkers(url, authority=authority, timeout_s=TIMEOUT_S)
        self._changing = ConnectWorkers(url, authority=authority, timeout_s=CHANGE_TIMEOUT_S)
        self._validating = ConnectWorkers(url, authority=authority, timeout_s=VALIDATION_TIMEOUT_S)

    def version(self) -> str:
        return str(self._workers.get("/").get("version") or "")

    def connectors(self) -> list[ConnectorRow]:
        """All of them, with one question."""
        found = self._workers.get("/connectors?expand=status&expand=info")
        return [_row(name, one) for name, one in sorted(found.items())]

    def connector(self, name: str) -> ConnectorRow:
        """Refused, with 404, where there is none."""
        info = self._workers.get(path_of(name))
        try:
            status = self._workers.get(path_of(name, "status"))
        except Refused as error:
            if error.code != 404:
                raise
            status = {}  # it was made just now
        return _row(name, {"info": info, "status": status}, self.topics(name))

    def topics(self, name: str) -> tuple[str, ...]:
        try:
            found = self._workers.get(path_of(name, "topics"))
        except Refused:
            return ()  # a worker may be told not to keep them
        return tuple(sorted((found.get(name) or {}).get("topics") or ()))

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Refused where the worker is of before Kafka 3.5."""
        found: list[dict[str, Any]] = self._workers.get(path_of(name, "offsets"))["offsets"]
        return found

    def plugins(self) -> list[PluginClass]:
        return sorted(
            PluginClass(str(one["class"]), str(one.get("type") or ""), str(one.get("version") or ""))
            for one in self._workers.get("/connector-plugins")
        )

    def validate(self, config: Mapping[str, str]) -> Verdict:
        """`connector.class` must be in it."""
        kind = quote(config["connector.class"].rpartition(".")[2], safe="")
        said = self._validating.ask("PUT", f"/connector-plugins/{kind}/config/validate", dict(config))
        fields = tuple(_field(one) for one in said["configs"])
        groups = tuple(str(each) for each in said.get("groups") or ())
        return Verdict(fields, groups, int(said.get("error_count") or 0))

    # ------------------------------------------------------------------ changes

    def create(self, name: str, config: Mapping[str, str], *, state: str = RUNNING) -> None:
        body: dict[str, Any] = {"name": name, "config": dict(config)}
        if state != RUNNING:
            body["initial_state"] = state
        self._changing.ask("POST", "/connectors", body)

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        self._changing.ask("PUT", path_of(name, "config"), dict(config))

    def delete(self, name: str) -> None:
        self._changing.ask("DELETE", path_of(name))

    def restart(self, name: str, *, only_failed: bool = False) -> None:
        only = "true" if only_failed else "false"
        self._changing.ask("POST", path_of(name, f"restart?includeTasks=true&onlyFailed={only}"))

    def restart_task(self, name: str, number: int) -> None:
        self._changing.ask("POST", path_of(name, "tasks", str(number), "restart"))

    def pause(self, name: str) -> None:
        self._changing.ask("PUT", path_of(name, "pause"))

    def resume(self, name: str) -> None:
        self._changing.ask("PUT", path_of(name, "resume"))

    def stop(self, name: str) -> None:
        self._changing.ask("PUT", path_of(name, "stop"))

    def alter_offsets(self, name: str, changes: Sequence[Mapping[str, Any]]) -> str:
        """What the worker says of it."""
        said = self._changing.ask("PATCH", path_of(name, "offsets"), {"offsets": list(changes)})
        return str((said or {}).get("message") or "")

    def reset_offsets(self, name: str) -> str:
        said = self._changing.ask("DELETE", path_of(name, "offsets"))
        return str((said or {}).get("message") or "")


def without_secrets(name: str, value: str) -> str:
    """A setting for the eye: dots for what is called a secret, and for logins in addresses.

    >>> without_secrets("connection.url", "jdbc:postgresql://ana:s3cret@db/x?password=s3cret")
    'jdbc:postgresql://••••••@db/x?password=••••••'
    """
    if not value:
        return value
    if SECRET.search(name):
        return HIDDEN
    return _IN_QUERY.sub(rf"\1={HIDDEN}", _LOGIN.sub(f"//{HIDDEN}@", value))[:MAX_VALUE_CHARS]


def _row(name: str, one: Mapping[str, Any], topics: tuple[str, ...] = ()) -> ConnectorRow:
    info, status = one.get("info") or {}, one.get("status") or {}
    config = {str(key): str(value) for key, value in (info.get("config") or {}).items()}
    head = status.get("connector") or {}
    tasks = tuple(
        Task(
            int(each["id"]),
            str(each["state"]),
            str(each.get("worker_id") or ""),
            str(each.get("trace") or ""),
        )
        for each in status.get("tasks") or ()
    )
    return ConnectorRow(
        name,
        str(info.get("type") or status.get("type") or "unknown"),
        config.get("connector.class", ""),
        str(head.get("state") or UNASSIGNED),
        str(head.get("worker_id") or ""),
        str(head.get("trace") or ""),
        tasks,
        topics,
        config,
    )


def _field(one: Mapping[str, Any]) -> Field:
    definition, value = one["definition"], one["value"]
    default = definition.get("default_value")
    return Field(
        name=str(value["name"]),
        label=str(definition.get("display_name") or value["name"]),
        kind=str(definition.get("type") or "STRING"),
        group=str(definition.get("group") or ""),
        order=int(definition.get("order") or 0),
        importance=str(definition.get("importance") or "LOW"),
        default=None if default is None else str(default),
        is_required=bool(definition.get("required")),
        documentation=str(definition.get("documentation") or ""),
        value=None if value.get("value") is None else str(value["value"]),
        choices=tuple(str(each) for each in value.get("recommended_values") or ()),
        errors=tuple(str(each) for each in value.get("errors") or ()),
        is_visible=bool(value.get("visible", True)),
    )
