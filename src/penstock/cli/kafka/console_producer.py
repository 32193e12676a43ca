"""kafka-console-producer: each line of standard input becomes a record."""

import sys
from typing import Any

from penstock.cli.clients import Connection, translated
from penstock.cli.failures import Unreachable, UserError
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.client_errors import reason
from penstock.cli.kafka.get_offsets import validate_bootstrap
from penstock.cli.kafka.line_reader import BadLine, LineReader, Record
from penstock.cli.kafka.old_spellings import modernise
from penstock.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, Option, Options, OptionTable
from penstock.cli.property_files import parse_pairs, read_properties
from penstock.cli.record_sender import send

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LINE_READER = "LineMessageReader"
FLUSH_TIMEOUT_S = 130.0
POLL_EVERY_RECORDS = 1000
READER_PROPERTIES = """How lines are read; may be given many times:
 parse.key=false  parse.headers=false  ignore.error=false
 key.separator=⇥  headers.delimiter=⇥  headers.separator=,  headers.key.separator=:
 null.marker=TEXT  (a field equal to it is null)"""
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

TABLE = OptionTable(
    "kafka-console-producer",
    "This tool helps to read data from standard input and publish it to Kafka.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("broker-list", "The older spelling of --bootstrap-server.", "HOST:PORT", old=True),
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
            "line-reader", "The Java class that reads lines; only Kafka's own is here.", "CLASS", LINE_READER
        ),
        Option("reader-config", "A properties file for the reader; --reader-property wins over it.", "FILE"),
        Option("reader-property", READER_PROPERTIES, "NAME=VALUE"),
        Option("command-property", "A property of the producer; wins over --command-config.", "NAME=VALUE"),
        Option("property", "The older spelling of --reader-property.", "NAME=VALUE", old=True),
        Option("producer-property", "The older spelling of --command-property.", "NAME=VALUE", old=True),
        Option("producer.config", "The older spelling of --command-config.", "FILE", old=True),
    ],
    examples=[
        "echo 'hello' | kafka-console-producer --bootstrap-server localhost:9092 --topic orders",
        "kafka-console-producer --bootstrap-server localhost:9092 --topic orders "
        "--reader-property parse.key=true --reader-property key.separator=,",
    ],
)


def execute(given: Options) -> int:
    if given.has("broker-list") and not given.has("bootstrap-server"):
        given.add("bootstrap-server", given.value("broker-list"))
    given.require("topic")
    validate_bootstrap(given.value("bootstrap-server"))
    modernise(
        given,
        OLD_SPELLINGS,
        "Warning: --{} is deprecated and will be removed in a future version. Use --{} instead.",
    )
    for option in NUMERIC:
        given.integer(option)
    if (given.value("line-reader") or "").rpartition(".")[2] != LINE_READER:
        raise UserError(f"there is no reader {given.value('line-reader')} here: only {LINE_READER}")
    reader = LineReader(reader_properties(given))
    connection, defaults = producer_settings(given)
    return _Sender(connection, defaults, topic=given.value("topic") or "", is_sync=given.has("sync")).run(
        reader
    )


def reader_properties(given: Options) -> dict[str, str]:
    path = given.value("reader-config")
    return {**(read_properties(path) if path else {}), **parse_pairs(given.values("reader-property"))}


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
    # Java's producer puts a key on the same partition as every other Java client does; so does this one.
    defaults = {"partitioner": "murmur2_random", "delivery.timeout.ms": "120000"}
    return Connection(given.value("bootstrap-server") or "", properties), defaults


class _Sender:
    def __init__(
        self, connection: Connection, defaults: dict[str, str], *, topic: str, is_sync: bool
    ) -> None:
        self.topic = topic
        self.is_sync = is_sync
        self.failed = 0
        self.fatal: Exception | None = None
        self.producer = connection.producer(defaults, error_cb=self._on_error)

    def run(self, reader: LineReader) -> int:
        code = 0
        try:
            for count, line in enumerate(input_lines(), start=1):
                self._send(reader.read(line))
                if count % POLL_EVERY_RECORDS == 0:
                    self.producer.poll(0)
                if self.fatal is not None:
                    break
        except BadLine as error:
            tool.complain(f"org.apache.kafka.common.KafkaException: {error}")
            code = 1
        except KeyboardInterrupt:
            code = tool.INTERRUPTED
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
            self.producer.flush(FLUSH_TIMEOUT_S)

    def _finish(self, code: int) -> int:
        """Nothing that was read is left unsent: wait for it as long as it may take to be delivered."""
        left = self.producer.flush(FLUSH_TIMEOUT_S)
        if self.fatal is not None:
            raise Unreachable(str(self.fatal))
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

    def _on_error(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._FATAL):
            self.fatal = Unreachable(f"the broker does not let us in: {error.str()}")


def input_lines() -> Any:
    """The lines of standard input without their ends; a prompt before each on a terminal."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    stream = sys.stdin.buffer
    while True:
        if is_terminal:
            print(">", end="", flush=True)
        line = stream.readline()
        if not line:
            return
        yield line.rstrip(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape")


def main(argv: list[str]) -> int:
    return tool.run(TABLE, execute, argv)


if __name__ == "__main__":
    tool.leave(main(sys.argv[1:]))
