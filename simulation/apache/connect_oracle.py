"""Apache Kafka's own transforms, predicates and converters, asked from Python: what ours are compared with.

One JVM with Connect's jars answers; py4j, which comes with PySpark, carries the questions. Records and values go over as JSON
with schemas, in the form of Kafka's JsonConverter:

    {"schema": {"type": "int32", "optional": false}, "payload": 1}          # without a schema: {"schema": null, "payload": …}

A record is {"kind": "sink", "topic", "partition", "key", "value", "timestamp", "offset", "headers"}; a header has a "name", too.
What Java refuses is a `Refused` with the class of the exception and its words.

    oracle().transform("org.apache.kafka.connect.transforms.HoistField$Value", {"field": "a"}, {"topic": "t", "value": …})
    oracle().to_connect("org.apache.kafka.connect.json.JsonConverter", {}, "t", b"…")
"""

import atexit
import base64
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_collections import JavaList, JavaMap, JavaSet
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, get_field
from py4j.protocol import Py4JJavaError

from simulation.apache.java import DEFAULT_VERSION, TOOL_HEAP, java_command
from simulation.apache.resident_tools import STOP_TIMEOUT_S, _plain_errors

Json = dict[str, Any]
NULL: Json = {"schema": None, "payload": None}
# Some of Kafka's transforms write times in the zone of the JVM.
OPTIONS = (
    *TOOL_HEAP,
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
    *("-Duser.timezone=UTC", "-Duser.language=en", "-Duser.country=US"),
)
CONVERTER = {"schemas.enable": "true", "replace.null.with.default": "false"}
MAX_VALUES = 10_000
_PACKAGE = "org.apache.kafka.connect."
_STRING, _OBJECT, _SCHEMA = "java.lang.String", "java.lang.Object", _PACKAGE + "data.Schema"
_LONG, _INTEGER, _TIME_TYPE = (
    "java.lang.Long",
    "java.lang.Integer",
    "org.apache.kafka.common.record.TimestampType",
)
_ITERABLE, _MAP, _PRIMITIVE_LONG, _PRIMITIVE_INT = "java.lang.Iterable", "java.util.Map", "long", "int"


class Refused(Exception):
    """Java raised an exception. `causes` are the classes behind it."""

    def __init__(self, java_class: str, message: str | None, causes: tuple[str, ...]) -> None:
        super().__init__(f"{java_class}: {message}")
        self.java_class = java_class
        self.message = message
        self.causes = causes


class ConnectOracle:
    """Started by the constructor. Not for several threads.

    py4j makes Python's numbers of Java's, and of those it makes ints and doubles when they go back: a byte or a long would not
    come back as what it was. So values stay in Java, in a list of one, and methods are called by reflection.
    """

    def __init__(self, version: str = DEFAULT_VERSION, *, more_jars: Sequence[Path] = ()) -> None:
        """`more_jars`: of transforms and converters that are not Kafka's."""
        jar = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
        command = java_command(
            "py4j.GatewayServer",
            *("--die-on-broken-pipe", "--enable-auth", "0"),
            version=version,
            jvm_options=OPTIONS,
            quick=True,
            more_jars=[jar, *more_jars],
        )
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        port, token = int(self._process.stdout.readline()), self._process.stdout.readline().strip()
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token, enable_memory_management=False)
        )
        self._found: dict[tuple[str, ...], Any] = {}
        self._values: dict[str, tuple[Any, Any]] = {}
        self._class_class = self._static("java.lang.Class")
        self._array_list = self._static("java.util.ArrayList")
        self._hash_map = self._static("java.util.HashMap")
        self._create_time = self._static(_TIME_TYPE).CREATE_TIME
        self._json = self._configured(_PACKAGE + "json.JsonConverter", CONVERTER, is_key=False)
        self._without_schema = self._configured(
            _PACKAGE + "json.JsonConverter", {**CONVERTER, "schemas.enable": "false"}, is_key=False
        )

    def transform(self, java_class: str, config: Mapping[str, str], *records: Json) -> list[Json | None]:
        """What one transform makes of these records, one after the other. Refused for the first that fails."""
        with self._refusals():
            transform = self._new(java_class)
            transform.configure(self._map(config))
            results = [transform.apply(self._record(record)) for record in records]
            return [None if result is None else self._record_json(result) for result in results]

    def is_matched(self, java_class: str, config: Mapping[str, str], record: Json) -> bool:
        """By a predicate."""
        with self._refusals():
            predicate = self._new(java_class)
            predicate.configure(self._map(config))
            return bool(predicate.test(self._record(record)))

    def to_connect(
        self,
        java_class: str,
        config: Mapping[str, str],
        topic: str,
        data: bytes | None,
        *,
        is_key: bool = False,
    ) -> Json:
        """The value with its schema that a converter makes of bytes."""
        with self._refusals():
            found = self._configured(java_class, config, is_key=is_key).toConnectData(topic, data)
            return self._value_json(found.schema(), found.value())

    def from_connect(
        self, java_class: str, config: Mapping[str, str], topic: str, value: Json, *, is_key: bool = False
    ) -> bytes | None:
        """The bytes that a converter makes of a value."""
        with self._refusals():
            converter = self._configured(java_class, config, is_key=is_key)
            schema, given = self._value(value)
            types = (_STRING, _SCHEMA, _OBJECT)
            made = self._invoke(converter, "fromConnectData", types, self._listed(topic, schema), given)
            return None if made is None else bytes(made)

    def to_header(
        self, java_class: str, config: Mapping[str, str], topic: str, name: str, data: bytes | None
    ) -> Json:
        with self._refusals():
            found = self._configured(java_class, config, is_key=None).toConnectHeader(topic, name, data)
            return self._value_json(found.schema(), found.value())

    def from_header(
        self, java_class: str, config: Mapping[str, str], topic: str, name: str, value: Json
    ) -> bytes | None:
        with self._refusals():
            converter = self._configured(java_class, config, is_key=None)
            schema, given = self._value(value)
            types = (_STRING, _STRING, _SCHEMA, _OBJECT)
            made = self._invoke(
                converter, "fromConnectHeader", types, self._listed(topic, name, schema), given
            )
            return None if made is None else bytes(made)

    def parsed(self, text: str) -> Json:
        """What Kafka's `Values.parseString` takes a text for."""
        with self._refusals():
            found = self._static(_PACKAGE + "data.Values").parseString(text)
            return dict(NULL) if found is None else self._value_json(found.schema(), found.value())

    def settings(self, java_class: str) -> list[Json]:
        """What a class can be configured with (its ConfigDef)."""
        with self._refusals():
            keys = self._new(java_class).config().configKeys()
            return [self._setting(key) for key in keys.values()]

    def _setting(self, key: Any) -> Json:
        default = get_field(key, "defaultValue")
        return {
            "name": get_field(key, "name"),
            "type": get_field(key, "type").name(),
            "importance": get_field(key, "importance").name(),
            "is_required": not key.hasDefault(),
            "default": _plain(default) if key.hasDefault() else None,
        }

    def close(self) -> None:
        self._gateway.close()
        with self._process:  # which closes its input: it ends by that
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        with _plain_errors():
            try:
                yield
            except Py4JJavaError as error:
                raise _refused(error.java_exception) from None

    def _static(self, name: str) -> Any:
        """A class, for its static methods and as a constructor. Each dot of a name is a call: it is kept."""
        key = ("static", name)
        if key not in self._found:
            self._found[key] = reduce(getattr, name.split("."), self._gateway.jvm)
        return self._found[key]

    def _java_class(self, name: str) -> Any:
        key = ("class", name)
        if key not in self._found:
            primitives = {_PRIMITIVE_LONG: _LONG, _PRIMITIVE_INT: _INTEGER}
            boxed = primitives.get(name)
            self._found[key] = self._class_class.forName(name) if boxed is None else self._static(boxed).TYPE
        return self._found[key]

    def _new(self, name: str) -> Any:
        """By its name: py4j does not find classes in classes."""
        return self._constructor(name, ()).newInstance(self._listed().toArray())

    def _constructor(self, name: str, types: tuple[str, ...]) -> Any:
        key = ("new", name, *types)
        if key not in self._found:
            self._found[key] = self._java_class(name).getDeclaredConstructor(self._class_array(types))
        return self._found[key]

    def _invoke(self, target: Any, method: str, types: tuple[str, ...], *arguments: Any) -> Any:
        """The arguments are lists, one behind the other."""
        found = target.getClass().getMethod(method, self._class_array(types))
        return found.invoke(target, self._joined(*arguments))

    def _class_array(self, types: tuple[str, ...]) -> Any:
        made = self._gateway.new_array(self._class_class, len(types))
        for place, name in enumerate(types):
            made[place] = self._java_class(name)
        return made

    def _listed(self, *values: Any) -> Any:
        made = self._array_list()
        for value in values:
            made.add(value)
        return made

    def _joined(self, *lists: Any) -> Any:
        made = self._array_list()
        for each in lists:
            made.addAll(each)
        return made.toArray()

    def _map(self, values: Mapping[str, str]) -> Any:
        made = self._hash_map()
        for name, value in values.items():
            made.put(name, value)
        return made

    def _configured(self, java_class: str, config: Mapping[str, str], *, is_key: bool | None) -> Any:
        """A converter; None: of headers."""
        made = self._new(java_class)
        if is_key is None:
            made.configure(self._map({**config, "converter.type": "header"}))
        else:
            made.configure(self._map(config), is_key)
        return made

    def _value(self, value: Json) -> tuple[Any, Any]:
        """Its schema, and a list of it alone. The same one is made once."""
        said = json.dumps([value["schema"], value["payload"]])
        if said not in self._values:
            if len(self._values) >= MAX_VALUES:
                self._values.clear()
            self._values[said] = self._made(value)
        return self._values[said]

    def _made(self, value: Json) -> tuple[Any, Any]:
        if value["schema"] is None:
            said = json.dumps([value["payload"]]).encode()
            return None, self._without_schema.toConnectData("", said).value()
        around = {"type": "array", "items": value["schema"], "optional": False}
        said = json.dumps({"schema": around, "payload": [value["payload"]]}).encode()
        found = self._json.toConnectData("", said)
        return found.schema().valueSchema(), found.value()

    def _number(self, number: int | None) -> Any:
        """A long, in a list."""
        return self._value({"schema": None, "payload": number})[1]

    def _record(self, record: Json) -> Any:
        key_schema, key = self._value(record.get("key", NULL))
        value_schema, value = self._value(record.get("value", NULL))
        headers = self._new(_PACKAGE + "header.ConnectHeaders")
        for header in record.get("headers", ()):
            schema, given = self._value(header)
            parts = self._listed(header["name"]), given, self._listed(schema)
            self._invoke(headers, "add", (_STRING, _OBJECT, _SCHEMA), *parts)
        timestamp = self._number(record.get("timestamp"))
        partition = record.get("partition")
        schemas = (_SCHEMA, _OBJECT, _SCHEMA, _OBJECT)
        middle = (self._listed(key_schema), key, self._listed(value_schema), value)
        if record.get("kind") == "source":
            of_source = self._constructor(
                _PACKAGE + "source.SourceRecord", (_MAP, _MAP, _STRING, _INTEGER, *schemas, _LONG, _ITERABLE)
            )
            start = self._listed(None, None, record["topic"], partition)
            return of_source.newInstance(self._joined(start, *middle, timestamp, self._listed(headers)))
        of_sink = self._constructor(
            _PACKAGE + "sink.SinkRecord",
            (_STRING, _PRIMITIVE_INT, *schemas, _PRIMITIVE_LONG, _LONG, _TIME_TYPE, _ITERABLE),
        )
        start = self._listed(record["topic"], partition or 0)
        end = self._listed(self._create_time, headers)
        return of_sink.newInstance(
            self._joined(start, *middle, self._number(record.get("offset", 0)), timestamp, end)
        )

    def _record_json(self, record: Any) -> Json:
        found: Json = {
            "topic": record.topic(),
            "partition": record.kafkaPartition(),
            "key": self._value_json(record.keySchema(), record.key()),
            "value": self._value_json(record.valueSchema(), record.value()),
            "timestamp": record.timestamp(),
            "headers": [],
        }
        headers = record.headers().iterator()
        while headers.hasNext():
            header = headers.next()
            found["headers"].append(
                {"name": header.key(), **self._value_json(header.schema(), header.value())}
            )
        return found

    def _value_json(self, schema: Any, value: Any) -> Json:
        if schema is None:
            return {"schema": None, "payload": _plain(value)}
        said = json.loads(self._json.asJsonSchema(schema).toString())
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"schema": said, "payload": value}
        if isinstance(value, Decimal):
            value = _unscaled(value)
        if isinstance(value, (bytes, bytearray)):
            return {"schema": said, "payload": base64.b64encode(value).decode()}
        try:
            payload = json.loads(bytes(self._json.fromConnectData("", schema, value)))["payload"]
        except Py4JJavaError as error:  # a transform may leave a required field empty
            payload = {"invalid": _refused(error.java_exception).message}
        return {"schema": said, "payload": payload}


def _unscaled(value: Decimal) -> bytes:
    number = int(value.scaleb(-int(value.as_tuple().exponent)))
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _plain(value: Any) -> Any:
    """A value without a schema, as what it is closest to in JSON; times become {"time": milliseconds since 1970}."""
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, JavaMap):
        return {entry.getKey(): _plain(entry.getValue()) for entry in value.entrySet()}
    if isinstance(value, (JavaList, JavaSet)):
        return [_plain(each) for each in value]
    if not isinstance(value, JavaObject):
        return value
    is_time = value.getClass().getName() == "java.util.Date"
    return {"time": value.getTime()} if is_time else str(value.toString())


def _refused(error: Any) -> Refused:
    causes = []
    while error.getClass().getName() == "java.lang.reflect.InvocationTargetException":
        error = error.getCause()
    cause = error.getCause()
    while cause is not None:
        causes.append(cause.getClass().getName())
        cause = cause.getCause()
    return Refused(error.getClass().getName(), error.getMessage(), tuple(causes))


_oracles: dict[str, ConnectOracle] = {}


def oracle(version: str = DEFAULT_VERSION) -> ConnectOracle:
    """The one of this process; the first call starts it."""
    if version not in _oracles:
        _oracles[version] = ConnectOracle(version)
    return _oracles[version]


@atexit.register
def _close_oracles() -> None:
    while _oracles:
        _oracles.popitem()[1].close()
