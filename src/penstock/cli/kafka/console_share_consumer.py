"""kafka-console-share-consumer: not here. It says so in one line, and what to use instead."""

from penstock.cli.kafka.options import Option, Options, OptionTable
from penstock.client.errors import UserError

TABLE = OptionTable(
    "kafka-console-share-consumer",
    "Reading as a member of a share group is not possible with this tool: it says what to use instead.",
    [
        Option("topic", "The topic.", "TOPIC"),
        Option("group", "The share group.", "GROUP"),
        Option("max-messages", "How many records to read.", "N"),
        Option("timeout-ms", "How long to wait for a record.", "MS"),
        Option("release", "Release records, for other members."),
        Option("reject", "Reject records."),
        Option("reject-message-on-error", "Reject a record that cannot be shown."),
        Option("enable-systest-events", "Tell of the consumer's life."),
        Option("formatter", "How records are shown.", "CLASS"),
        Option("formatter-config", "A file with properties of the formatter.", "FILE"),
        Option("formatter-property", "A property of the formatter.", "NAME=VALUE"),
        Option("property", "The older spelling of --formatter-property.", "NAME=VALUE", old=True),
        Option("consumer-property", "The older spelling of --command-property.", "NAME=VALUE", old=True),
        Option("consumer-config", "The older spelling of --command-config.", "FILE", old=True),
        Option("command-property", "A property of the client.", "NAME=VALUE"),
        Option("key-deserializer", "The class that reads keys.", "CLASS"),
        Option("value-deserializer", "The class that reads values.", "CLASS"),
    ],
    examples=[
        "kafka-console-share-consumer --bootstrap-server localhost:9092 --topic orders --group sharers"
    ],
)


def execute(given: Options) -> int:
    raise UserError(
        "it cannot join a share group. Read as a group of consumers with kafka-console-consumer, or, on a cluster of "
        "Apache Kafka that has share groups, use Apache Kafka's own kafka-console-share-consumer.sh"
    )
