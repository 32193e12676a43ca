"""Hosts a source connector of Kafka Connect's in a Java machine: a process, which `python -m` runs; see `side_process`.

asked      ("start", class, config, jars, java options)   answered   ("started", version)
           ("offset", bytes or None)                                 the answer to ("offset?", source partition)
           ("poll",)                                                 ("records", number, [record…])
           ("kept", number)                                          nothing: the records of this poll, and of those before
anything may be answered by                       ("failed", class, text, trace)

A record is (topic, partition, timestamp, key, value, headers, source partition, source offset): key and value are JSON with
schemas, source partition and offset plain JSON, all as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.connectors.side_process import Channel

NAME: Final = "penstock.connect.connectors.change_capture.java_source"
LOG_OPTIONS: Final = ("-Dorg.apache.logging.log4j.level=ERROR", "-Dlog4j2.level=ERROR")
TRACE_MAX: Final = 6000
CAUSES_MAX: Final = 5
HEADERS_MAX: Final = 1000
_CONNECT: Final = "org.apache.kafka.connect."


class Host:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._task: Any = None
        self._connector: Any = None
        self._number = 0
        self._last: dict[int, dict[str, Any]] = {}
        """By poll: the last record of each source partition, which is what Debezium wants to know."""
        self._headers: dict[str, bytes] = {}

    def run(self) -> None:
        while True:
            message = self._channel.receive()
            try:
                getattr(self, f"on_{message[0]}")(*message[1:])
            except Exception as error:
                self._channel.send("failed", *_told(error))

    def on_start(self, name: str, config: Mapping[str, str], jars: list[str], options: list[str]) -> None:
        import jpype

        jpype.startJVM(*options, *LOG_OPTIONS, classpath=jars, interrupt=False)
        # Libraries that do not log as the others do.
        jpype.JClass("java.util.logging.LogManager").getLogManager().reset()
        self._json = _converter("true")
        self._plain = _converter("false")
        props = jpype.JClass("java.util.HashMap")(dict(config))
        connector = jpype.JClass(name)()
        connector.initialize(_connector_context(jpype, self._offset))
        _validate(connector, props)
        connector.start(props)
        configs = connector.taskConfigs(1)
        if not len(configs):
            raise RuntimeError(f"{name} has no task for this configuration")
        task = connector.taskClass().getDeclaredConstructor().newInstance()
        task.initialize(_task_context(jpype, self._offset, configs[0]))
        task.start(configs[0])
        self._connector, self._task = connector, task
        self._channel.send("started", str(connector.version()))

    def on_poll(self) -> None:
        found = self._task.poll()
        self._number += 1
        records = []
        last: dict[str, Any] = {}
        places: dict[Any, bytes] = {}
        for record in found if found is not None else ():
            partition = record.sourcePartition()
            place = places.get(partition)
            if place is None:
                place = places[partition] = self._bytes("", None, partition)
            last[place.decode()] = record
            records.append(self._taken(record, place))
        if last:
            self._last[self._number] = last
        self._channel.send("records", self._number, records)

    def on_kept(self, number: int) -> None:
        kept: dict[str, Any] = {}
        for each in sorted(each for each in self._last if each <= number):
            kept.update(self._last.pop(each))
        for record in kept.values():
            self._task.commitRecord(record, None)
        self._task.commit()

    def _taken(self, record: Any, place: bytes) -> tuple[Any, ...]:
        topic = str(record.topic())
        partition, timestamp = record.kafkaPartition(), record.timestamp()
        convert = self._json.fromConnectData
        headers = [(str(each.key()), self._header(topic, each)) for each in record.headers()]
        key = None if record.key() is None else bytes(convert(topic, record.keySchema(), record.key()))
        value = (
            None if record.value() is None else bytes(convert(topic, record.valueSchema(), record.value()))
        )
        return (
            topic, None if partition is None else int(partition), None if timestamp is None else int(timestamp), key, value,
            headers, place, self._bytes(topic, None, record.sourceOffset()),
        )  # fmt: skip

    def _header(self, topic: str, header: Any) -> bytes | None:
        """Debezium's are texts, and the same in record after record."""
        value = header.value()
        text = str(value) if isinstance(value, str) else None
        found = None if text is None else self._headers.get(text)
        if found is None:
            made = self._json.fromConnectData(topic, header.schema(), value)
            if made is None:
                return None
            found = bytes(made)
            if text is not None and len(self._headers) < HEADERS_MAX:
                self._headers[text] = found
        return found

    def _bytes(self, topic: str, schema: Any, value: Any) -> bytes:
        return bytes(self._plain.fromConnectData(topic, schema, value))

    def _offset(self, partition: Any) -> Any:
        """As Kafka Connect gives it to a task: what its JSON says."""
        self._channel.send("offset?", json.loads(self._bytes("", None, partition)))
        message = self._channel.receive()
        assert message[0] == "offset"
        if message[1] is None:
            return None
        return self._plain.toConnectData("", message[1]).value()

    def end(self) -> None:
        """The task has gone. Debezium lets go of its slot and its connections."""
        if self._task is not None:
            self._task.stop()
            self._connector.stop()


def _validate(connector: Any, props: Any) -> None:
    """What is wrong, in Debezium's words: `start` would only say that something is."""
    wrong = [
        f"{each.name()}: {text}"
        for each in connector.validate(props).configValues()
        for text in each.errorMessages()
    ]
    if wrong:
        raise ValueError("; ".join(map(str, wrong)))


def _converter(has_schemas: str) -> Any:
    import jpype

    made = jpype.JClass("org.apache.kafka.connect.json.JsonConverter")()
    settings = {"schemas.enable": has_schemas, "schemas.cache.size": "1000", "converter.type": "value"}
    made.configure(jpype.JClass("java.util.HashMap")(settings))
    return made


def _task_context(jpype: Any, offset: Any, config: Any) -> Any:
    reader = _reader(jpype, offset)
    return jpype.JProxy(
        _CONNECT + "source.SourceTaskContext",
        dict={
            "configs": lambda: config,
            "offsetStorageReader": lambda: reader,
            "transactionContext": lambda: None,
            "pluginMetrics": lambda: None,
        },
    )


def _connector_context(jpype: Any, offset: Any) -> Any:
    reader = _reader(jpype, offset)
    return jpype.JProxy(
        _CONNECT + "source.SourceConnectorContext",
        dict={
            "requestTaskReconfiguration": lambda: None,
            "raiseError": lambda error: None,
            "offsetStorageReader": lambda: reader,
            "pluginMetrics": lambda: None,
        },
    )


def _reader(jpype: Any, offset: Any) -> Any:
    def offsets(partitions: Any) -> Any:
        found = jpype.JClass("java.util.HashMap")()
        for partition in partitions:
            found.put(partition, offset(partition))
        return found

    return jpype.JProxy(_CONNECT + "storage.OffsetStorageReader", dict={"offset": offset, "offsets": offsets})


def _told(error: Exception) -> tuple[str, str, str]:
    """The Java class or ours, what it says with its causes, and where."""
    said: list[str] = []
    names: list[str] = []
    cause: Any = error
    while cause is not None and len(names) < CAUSES_MAX:
        kind = getattr(type(cause), "class_", None)
        names.append(type(cause).__name__ if kind is None else str(kind.getName()))
        text = str(cause if kind is None else cause.getMessage())
        if text not in said:
            said.append(text)
        cause = None if kind is None else cause.getCause()
    trace = str(error.stacktrace()) if hasattr(error, "stacktrace") else repr(error)
    return names[0], ": ".join(said), trace[:TRACE_MAX]


def main() -> None:
    hosts: list[Host] = []

    def end() -> None:
        for host in hosts:
            host.end()

    channel = Channel(end)
    hosts.append(Host(channel))
    hosts[0].run()


if __name__ == "__main__":
    main()
