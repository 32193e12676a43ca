"""kafka-console-consumer: prints the records of topics."""

import random
import sys
import time
from typing import Any

from penstock.cli.kafka import tool
from penstock.cli.kafka.formatters import BadData, Formatter, formatter
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.cli.kafka.stop_signal import StopSignal
from penstock.client.clients import Connection, metadata
from penstock.client.errors import Unreachable
from penstock.client.property_files import parse_pairs, read_properties
from penstock.load.clients import MAX_RECORDS, POLL_S, TOPIC_PATIENCE, poll_batch

DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
FORMATTER_PROPERTIES = """How records are printed; may be given many times:
 print.timestamp, print.partition, print.offset, print.epoch, print.headers, print.key = true|false; print.value=true
 key.separator=⇥  line.separator=\\n  headers.separator=,  null.literal=null
 key.deserializer, value.deserializer, headers.deserializer = CLASS"""
OLD_SPELLINGS = {
    "consumer-property": "command-property",
    "consumer.config": "command-config",
    "property": "formatter-property",
}
SCHEMA_PROPERTIES = """How records are read and printed; may be given many times:
 schema.registry.url=http://localhost:8081, basic.auth.user.info=NAME:PASSWORD, bearer.auth.token, schema.registry.ssl.…
 print.schema.ids=false  schema.id.separator=⇥  preserve.json.field.name=false (Protobuf)
 and those of kafka-console-consumer: print.key, key.separator, key.deserializer and so on"""
DEPRECATED = "Option --{} is deprecated and will be removed in a future version. Use --{} instead."

OPTIONS = [
    Option("topic", "The topic to read.", "NAME"),
    Option("include", "A regular expression for the topics to read.", "REGEX"),
    Option("partition", "The one partition to read, from its end unless --offset is given.", "N"),
    Option("offset", "Where to begin in the partition: a number, earliest or latest.", "OFFSET", "latest"),
    Option("from-beginning", "Begin with the oldest record where the group has no offset yet."),
    Option("group", "The consumer group.", "NAME"),
    Option("max-messages", "End after so many records.", "N"),
    Option("timeout-ms", "End when no record came for so long.", "MS"),
    Option("isolation-level", "read_committed leaves out what was aborted or is not committed yet.", "LEVEL",
           "read_uncommitted"),
    Option("skip-message-on-error", "Go on after a record that cannot be printed."),
    Option("key-deserializer", "The class that reads keys, by Kafka's Java name.", "CLASS"),
    Option("value-deserializer", "The class that reads values, by Kafka's Java name.", "CLASS"),
    Option("formatter", "The class that prints records, by Kafka's Java name.", "CLASS", DEFAULT_FORMATTER),
    Option("formatter-config", "A properties file for the formatter; --formatter-property wins over it.", "FILE"),
    Option("formatter-property", FORMATTER_PROPERTIES, "NAME=VALUE"),
    Option("command-property", "A property of the consumer; wins over --command-config.", "NAME=VALUE"),
    Option("enable-systest-events", "Print a line when the consumer has ended."),
]  # fmt: skip
ALIASES = {"whitelist": "include", "broker-list": "bootstrap-server"}

TABLE = OptionTable(
    "kafka-console-consumer",
    "This tool helps to read data from Kafka topics and outputs it to standard output.",
    OPTIONS,
    old_spellings=OLD_SPELLINGS,
    aliases=ALIASES,
    examples=[
        "kafka-console-consumer --bootstrap-server localhost:9092 --topic orders --from-beginning",
        "kafka-console-consumer --bootstrap-server localhost:9092 --topic orders --from-beginning --max-messages 10 "
        "--formatter-property print.key=true",
    ],
)


def schema_table(tool: str, kind: str, formatter_class: str) -> OptionTable:
    """Of a tool of Confluent's, which is this one with a formatter of its own. There --property is no old spelling."""
    return OptionTable(
        tool,
        f"Confluent's kafka-console-consumer for values with {kind} schemas: it prints them as JSON.",
        [
            *OPTIONS,
            Option(
                "formatter",
                "The class that prints records, by its Java name; with this one values are read by the schemas of a "
                "registry.",
                "CLASS",
                formatter_class,
            ),
            Option("property", SCHEMA_PROPERTIES, "NAME=VALUE"),
            Option("formatter-property", "The same as --property.", "NAME=VALUE"),
        ],
        old_spellings={old: new for old, new in OLD_SPELLINGS.items() if old != "property"},
        aliases=ALIASES,
        examples=[
            f"{tool} --bootstrap-server localhost:9092 --topic orders --from-beginning "
            "--property schema.registry.url=http://localhost:8081 --property print.key=true"
        ],
    )


def execute(given: Options) -> int:
    _check(given)
    given.modernise("consumer-property", "consumer.config", warning=DEPRECATED)
    path = given.value("command-config")
    from_file = read_properties(path) if path else {}
    extra = parse_pairs(given.values("command-property"))
    groups = _groups(given, from_file, extra)
    properties = {**from_file, **extra}
    _set_reset(given, properties)
    start = _start_offset(given)
    timeout_ms = given.integer("timeout-ms")
    max_messages = given.integer("max-messages")
    if "property" in given.table.old_spellings:
        given.modernise("property", warning=DEPRECATED)
    printer = formatter(given.value("formatter") or "", _formatter_properties(given))
    _set_group(properties, groups)
    if given.has("isolation-level") or "isolation.level" not in properties:
        properties["isolation.level"] = given.value("isolation-level") or ""
    properties.setdefault("client.id", "console-consumer")
    connection = Connection(given.value("bootstrap-server") or "", properties)
    session = _Session(connection, given, printer, start=start)
    return session.run(max_messages=max_messages, timeout_ms=timeout_ms)


def _check(given: Options) -> None:
    if given.has("topic") == given.has("include"):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    if given.has("partition"):
        if not given.has("topic"):
            raise UsageError("The topic is required when partition is specified.")
        if given.has("from-beginning") and given.has("offset"):
            raise UsageError("Options from-beginning and offset cannot be specified together.")
    elif given.has("offset"):
        raise UsageError("The partition is required when offset is specified.")
    given.require("bootstrap-server")


def _groups(given: Options, from_file: dict[str, str], extra: dict[str, str]) -> list[str]:
    named = [given.value("group")] if given.has("group") else []
    named += [properties["group.id"] for properties in (from_file, extra) if "group.id" in properties]
    groups = list(dict.fromkeys(name for name in named if name is not None))
    if len(groups) > 1:
        shown = ", ".join(f"'{name}'" for name in groups)
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', "
            f"or via '--consumer.config') do not match. Detected group ids: {shown}"
        )
    if groups and given.has("partition"):
        raise UsageError("Options group and partition cannot be specified together.")
    return groups


def _set_group(properties: dict[str, str], groups: list[str]) -> None:
    if groups:
        properties["group.id"] = groups[0]
    else:
        # A group that nobody will use again: leave no offsets behind.
        properties["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        properties.setdefault("enable.auto.commit", "false")


def _set_reset(given: Options, properties: dict[str, str]) -> None:
    reset = properties.get("auto.offset.reset")
    if reset is None:
        properties["auto.offset.reset"] = "earliest" if given.has("from-beginning") else "latest"
    elif given.has("from-beginning") and reset != "earliest":
        raise OptionError(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
        )


def _start_offset(given: Options) -> int | str:
    """A number, or "earliest" or "latest"."""
    if not given.has("offset"):
        return "earliest" if given.has("from-beginning") else "latest"
    text = given.value("offset") or ""
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    try:
        offset = int(text)
    except ValueError:
        offset = -1
    if offset < 0:
        raise UsageError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', "
            "or a non-negative long."
        )
    return offset


def _formatter_properties(given: Options) -> dict[str, str]:
    path = given.value("formatter-config")
    properties = dict(read_properties(path)) if path else {}
    for option, name in (
        ("key-deserializer", "key.deserializer"),
        ("value-deserializer", "value.deserializer"),
    ):
        if given.value(option):
            properties[name] = given.value(option) or ""
    return {**properties, **parse_pairs([*given.values("property"), *given.values("formatter-property")])}


class _Stopped(Exception):
    """A signal asked us to end."""


class _NotAllowed(Exception):
    """Access rules are against it; the tool ends, and as in Kafka its exit code is 0."""


class _Session:
    """One consumer from its start to `Processed a total of N messages`."""

    def __init__(
        self, connection: Connection, given: Options, printer: Formatter, *, start: int | str
    ) -> None:
        self.printer = printer
        self.skip_bad = given.has("skip-message-on-error")
        self.tells_end = given.has("enable-systest-events")
        self.count = 0
        self.stop = StopSignal()
        self.fatal: str | None = None
        self.refusal: str | None = None
        self.topic = given.value("topic") or given.value("include")
        # librdkafka asks for a group even where one partition is read without it
        self.group = None if given.has("partition") else connection.properties["group.id"]
        self.complained: set[int] = set()
        defaults = {
            **TOPIC_PATIENCE,
            "enable.auto.offset.store": "false",
            "allow.auto.create.topics": "true",
            "enable.partition.eof": "false",
            "fetch.error.backoff.ms": "100",
        }
        self.consumer = connection.consumer(defaults, error_cb=self._on_error)
        self._begin(given, start)

    def _begin(self, given: Options, start: int | str) -> None:
        import confluent_kafka

        topic = given.value("topic")
        partition = given.integer("partition")
        if topic is None:
            self.consumer.subscribe([f"^({given.value('include')})$"])
        elif partition is None:
            self.consumer.subscribe([topic])
        else:
            named = {"earliest": confluent_kafka.OFFSET_BEGINNING, "latest": confluent_kafka.OFFSET_END}
            offset = named[start] if isinstance(start, str) else start
            # Once librdkafka knows the leader it looks the offset up at once, and not half a second later.
            problem = metadata(self.consumer, topic).topics[topic].error
            if (
                problem is not None
                and problem.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
            ):
                self._on_error(problem)
            self.consumer.assign([confluent_kafka.TopicPartition(topic, partition, offset)])

    def run(self, *, max_messages: int | None, timeout_ms: int | None) -> int:
        code = 0
        try:
            self._consume(-1 if max_messages is None else max_messages, timeout_ms)
        except _Stopped:
            code = self.stop.exit_code
        except BadData as error:
            tool.complain(f"ERROR {error}")
            code = 1
        except _NotAllowed as error:
            tool.complain(f"ERROR Error processing message, terminating consumer process: {error}")
        except BrokenPipeError:
            print("Unable to write to standard out, closing consumer.", file=sys.stderr)
        finally:
            self._close()
        if self.fatal is not None:
            raise Unreachable(self.fatal)
        return code

    def _consume(self, max_messages: int, timeout_ms: int | None) -> None:
        patience_s = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
        last_record_s = time.monotonic()
        while max_messages == -1 or self.count < max_messages:
            if self.stop.is_given():
                raise _Stopped
            if self.refusal is not None:
                raise _NotAllowed(self.refusal)
            if self.fatal is not None:
                return
            wait_s = POLL_S
            if patience_s is not None:
                left_s = patience_s - (time.monotonic() - last_record_s)
                if left_s <= 0:
                    return
                wait_s = min(wait_s, left_s)
            wanted = MAX_RECORDS if max_messages == -1 else max_messages - self.count
            if self._print(poll_batch(self.consumer, wait_s, wanted)):
                last_record_s = time.monotonic()

    def _print(self, batch: list[Any]) -> bool:
        """Whether there were records among what came; what was printed is what will be committed."""
        output = sys.stdout.buffer
        printed: dict[tuple[str, int], Any] = {}
        try:
            for record in batch:
                if record.error() is not None:
                    self._on_error(record.error())
                    continue
                self.count += 1
                try:
                    output.write(self.printer.format(record))
                except BadData as error:
                    if not self.skip_bad:
                        raise
                    tool.complain(f"ERROR Error processing message, skipping this message: {error}")
                printed[record.topic(), record.partition()] = record
            output.flush()
        finally:
            self._store(printed)
        return bool(printed)

    def _store(self, printed: dict[tuple[str, int], Any]) -> None:
        from confluent_kafka import KafkaException

        for record in printed.values():
            try:
                self.consumer.store_offsets(message=record)
            except KafkaException:
                pass  # the partition went to another member meanwhile: it will read these again

    def _close(self) -> None:
        self.consumer.close()
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            pass
        print(f"Processed a total of {self.count} messages", file=sys.stderr, flush=True)
        if self.tells_end:
            print("shutdown_complete", flush=True)

    def _on_error(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        code = error.code()
        if code in (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._FATAL):
            self.fatal = f"the broker does not let us in: {error.str()}"
        elif code == KafkaError.GROUP_AUTHORIZATION_FAILED:
            if self.group is not None:
                self.refusal = f"Not authorized to access group: {self.group}"
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self.refusal = f"Not authorized to access topics: [{self.topic}]"
        elif code in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._PARTITION_EOF):
            pass  # librdkafka goes on trying, and so do we
        elif code in (KafkaError._BAD_MSG, KafkaError.INVALID_MSG) and not self.skip_bad:
            raise BadData(f"Error processing message, terminating consumer process: {error.str()}")
        elif code not in self.complained:
            self.complained.add(code)
            tool.complain(f"WARN {error.str().removeprefix('Broker: ')}")
