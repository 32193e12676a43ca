"""kafka-console-producer: each line of standard input becomes a record."""

import sys
from collections.abc import Iterator
from typing import Any

from penstock.cli.kafka import tool
from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.get_offsets import validate_bootstrap
from penstock.cli.kafka.options import Option, Options, OptionTable
from penstock.cli.kafka.stop_signal import StopSignal
from penstock.client.clients import Connection, translated
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.line_reader import BadLine, LineReader, Record
from penstock.client.property_files import parse_pairs, read_properties
from penstock.client.record_sender import send
from penstock.load.clients import PRODUCER_DEFAULTS, ClientErrors, flush, reason

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LINE_READER = "LineMessageReader"
POLL_EVERY_RECORDS = 1000
READER_PROPERTIES = """How lines are read; may be given many times:
 parse.key=false  parse.headers=false  ignore.error=false
 key.separator=⇥  headers.delimiter=⇥  headers.separator=,  headers.key.separator=:
 null.marker=TEXT  (a field equal to it is null)"""
SCHEMA_PROPERTIES = """How lines are read and written; may be given many times:
 schema.registry.url=http://localhost:8081, basic.auth.user.info=NAME:PASSWORD, bearer.auth.token, schema.registry.ssl.…
 value.schema=TEXT | value.schema.file=FILE | value.schema.id=N  value.refs=JSON  the same with key. and parse.key=true
 auto.register.schemas=true  use.latest.version=false  normalize.schemas=false
 value.schema.full.name=NAME (Protobuf's message)
 value.subject.name.strategy, key.subject.name.strategy=CLASS  key.serializer=CLASS (of a key without a schema)
 and those of kafka-console-producer: parse.key, key.separator, null.marker and so on"""
OLD_SPELLINGS = {
    "property": "reader-property",
    "producer-property": "command-property",
    "producer.config": "command-config",
}
# Options that are short for a property of the producer: option → property. Given, they win over the property.
PROPERTY_OPTIONS = {
    "timeout": "linger.ms",
    "request-required-acks": "acks",
    "request-timeout-ms": "request.timeout.ms",
    "message-send-max-retries": "retries",
    "retry-backoff-ms": "retry.backoff.ms",
    "socket-buffer-size": "send.buffer.bytes",
    "max-memory-bytes": "buffer.memory",
    "batch-size": "batch.size",
    "max-partition-memory-bytes": "batch.size",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "max-block-ms": "max.block.ms",
}
NUMERIC = [option for option in PROPERTY_OPTIONS if option != "request-required-acks"]

OPTIONS = [
    Option("topic", "REQUIRED: the topic to write to.", "NAME"),
    Option("sync", "Wait for each record to be acknowledged before the next is sent."),
    Option(
        "compression-codec",
        f"{', '.join(CODECS)}; without a value, gzip.",
        "CODEC",
        value_is_optional=True,
    ),
    Option("batch-size", "How large a batch may become, in bytes.", "BYTES", "16384"),
    Option("timeout", "How long a record may wait for company, in ms (linger.ms).", "MS", "1000"),
    Option("request-required-acks", "Which replicas must have a record: 0, 1 or -1 (all).", "ACKS", "-1"),
    Option("request-timeout-ms", "How long an acknowledgement may take.", "MS", "1500"),
    Option("message-send-max-retries", "How often a record is sent again.", "N", "3"),
    Option("retry-backoff-ms", "The pause before a record is sent again.", "MS", "100"),
    Option("max-block-ms", "How long to wait for room for a record.", "MS", "60000"),
    Option("max-memory-bytes", "How much may wait to be sent.", "BYTES", "33554432"),
    Option("max-partition-memory-bytes", "The same as --batch-size.", "BYTES", "16384"),
    Option("metadata-expiry-ms", "How old the knowledge about the cluster may become.", "MS", "300000"),
    Option("socket-buffer-size", "The send buffer of the connection.", "BYTES", "102400"),
    Option(
        "line-reader",
        "The class that reads lines, by its Java name: Kafka's own or one of Confluent's for schemas.",
        "CLASS",
        LINE_READER,
    ),
    Option("reader-config", "A properties file for the reader; --reader-property wins over it.", "FILE"),
    Option("reader-property", READER_PROPERTIES, "NAME=VALUE"),
    Option("command-property", "A property of the producer; wins over --command-config.", "NAME=VALUE"),
]
ALIASES = {"broker-list": "bootstrap-server"}

TABLE = OptionTable(
    "kafka-console-producer",
    "This tool helps to read data from standard input and publish it to Kafka.",
    OPTIONS,
    old_spellings=OLD_SPELLINGS,
    aliases=ALIASES,
    examples=[
        "echo 'hello' | kafka-console-producer --bootstrap-server localhost:9092 --topic orders",
        "kafka-console-producer --bootstrap-server localhost:9092 --topic orders "
        "--reader-property parse.key=true --reader-property key.separator=,",
    ],
)


def schema_table(tool: str, kind: str, reader_class: str, schema: str) -> OptionTable:
    """Of a tool of Confluent's, which is this one with a reader of its own. There --property is no old spelling."""
    return OptionTable(
        tool,
        f"Confluent's kafka-console-producer for values with {kind} schemas: each line is JSON.",
        [
            *OPTIONS,
            Option(
                "line-reader",
                "The class that reads lines, by its Java name; with this one values are written by a schema.",
                "CLASS",
                reader_class,
            ),
            Option("property", SCHEMA_PROPERTIES, "NAME=VALUE"),
            Option("reader-property", "The same as --property.", "NAME=VALUE"),
        ],
        old_spellings={old: new for old, new in OLD_SPELLINGS.items() if old != "property"},
        aliases=ALIASES,
        examples=[
            f"{tool} --bootstrap-server localhost:9092 --topic orders "
            f"--property schema.registry.url=http://localhost:8081 --property value.schema='{schema}'"
        ],
    )


def execute(given: Options) -> int:
    given.require("topic")
    validate_bootstrap(given.value("bootstrap-server"))
    given.modernise(
        warning="Warning: --{} is deprecated and will be removed in a future version. Use --{} instead."
    )
    for option in NUMERIC:
        given.integer(option)
    reader = _reader(given)
    connection, defaults = producer_settings(given)
    return _Sender(connection, defaults, topic=given.value("topic") or "", is_sync=given.has("sync")).run(
        reader
    )


def reader_properties(given: Options) -> dict[str, str]:
    path = given.value("reader-config")
    pairs = [*given.values("property"), *given.values("reader-property")]
    return {**(read_properties(path) if path else {}), **parse_pairs(pairs)}


def _reader(given: Options) -> LineReader:
    name = (given.value("line-reader") or "").rpartition(".")[2]
    if name == LINE_READER:
        return LineReader(reader_properties(given))
    from penstock.client.schema_line_reader import READERS, SchemaLineReader

    if name not in READERS:
        known = ", ".join((LINE_READER, *READERS))
        raise UserError(f"there is no reader {given.value('line-reader')} here: only {known}")
    return SchemaLineReader(reader_properties(given), given.value("topic") or "", READERS[name])


def producer_settings(given: Options) -> tuple[Connection, dict[str, str]]:
    """The connection with all that was asked for, and what holds where nothing was."""
    properties = client_properties(given)
    for option, name in PROPERTY_OPTIONS.items():
        if given.has(option) or name not in properties:
            properties[name] = given.value(option) or ""
    if not given.has("timeout") and sys.stdin.isatty() and sys.stdout.isatty():
        properties["linger.ms"] = "5"  # a person who presses Return does not want to wait a second
    if given.has("compression-codec"):
        codec = given.value("compression-codec") or "gzip"
        if codec not in CODECS:
            raise UserError(f"unknown compression codec '{codec}': one of {', '.join(CODECS)}")
        properties["compression.type"] = codec
    properties.setdefault("client.id", "console-producer")
    if properties["acks"] in ("-1", "all") and properties["retries"] != "0":
        properties.setdefault("enable.idempotence", "true")
    defaults = {**PRODUCER_DEFAULTS, "message.timeout.ms": "120000"}
    return Connection(given.value("bootstrap-server") or "", properties), defaults


class _Sender:
    def __init__(
        self, connection: Connection, defaults: dict[str, str], *, topic: str, is_sync: bool
    ) -> None:
        self.topic = topic
        self.is_sync = is_sync
        self.failed = 0
        self.errors = ClientErrors(tool.complain)
        self.stop = StopSignal()
        self.producer = connection.producer(defaults, error_cb=self.errors)

    def run(self, reader: LineReader) -> int:
        code = 0
        try:
            for count, line in enumerate(input_lines(self.stop), start=1):
                self._send(reader.read(line))
                if count % POLL_EVERY_RECORDS == 0:
                    self.producer.poll(0)
                if self.errors.is_fatal:
                    break
        except BadLine as error:
            tool.complain(f"{error.java_name}: {error}")
            code = 1
        except (Refused, Unreachable, UserError):
            self._finish(1)  # what was read before
            raise
        except KeyboardInterrupt:
            code = self.stop.exit_code
        return self._finish(code)

    def _send(self, record: Record) -> None:
        from confluent_kafka import KafkaException

        try:
            send(
                self.producer,
                self.topic,
                key=record.key,
                value=record.value,
                headers=record.headers or None,
                on_delivery=self._on_delivery,
            )
        except KafkaException as error:
            self._report(record.key, record.value, str(translated(error)))
            return
        if self.is_sync:
            flush(self.producer, lambda: self.errors.is_fatal or self.stop.is_given())

    def _finish(self, code: int) -> int:
        """Nothing that was read is left unsent: wait for it as long as it may take to be delivered, or until a signal comes
        that does not only end the input."""
        heard = self.stop.count
        left = flush(self.producer, lambda: self.errors.is_fatal or self.stop.count > heard)
        self.errors.check()
        if left:
            tool.complain(f"{left} records were not acknowledged")
        return 1 if code == 0 and (left or self.failed) else code

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self._report(message.key(), message.value(), reason(error))

    def _report(self, key: bytes | None, value: bytes | None, reason: str) -> None:
        self.failed += 1
        sizes = ", ".join(
            f"{name}: {'null' if data is None else f'{len(data)} bytes'}"
            for name, data in (("key", key), ("value", value))
        )
        tool.complain(
            f"ERROR Error when sending message to topic {self.topic} with {sizes} with error: {reason}"
        )


def input_lines(stop: StopSignal) -> Iterator[str]:
    """The lines of standard input without their ends; a prompt before each on a terminal. KeyboardInterrupt on a signal."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    stream = sys.stdin.buffer
    while True:
        if is_terminal:
            print(">", end="", flush=True)
        with stop.breaking():
            line = stream.readline()
        if not line:
            return
        yield line.rstrip(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape")
