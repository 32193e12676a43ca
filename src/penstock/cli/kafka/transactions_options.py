"""The commands of kafka-transactions and their options."""

from penstock.cli.kafka.options import Option
from penstock.cli.kafka.subcommands import Subcommand, Subcommands

PURPOSE = (
    "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect and "
    "recover from hanging transactions."
)
TOPIC = Option("topic", "The topic.", "NAME")
PARTITION = Option("partition", "The number of the partition.", "N")

SUBCOMMANDS = Subcommands(
    "kafka-transactions",
    PURPOSE,
    {
        "list": Subcommand(
            "List transactions.",
            [
                Option(
                    "duration-filter", "Only those that have been open for longer; all when below 0.", "MS"
                ),
                Option(
                    "transactional-id-pattern",
                    "Only ids that this regular expression (RE2) matches.",
                    "REGEX",
                ),
            ],
            [],
            "list --duration-filter 60000",
        ),
        "describe": Subcommand(
            "Describe the state of an active transactional-id.",
            [Option("transactional-id", "The transactional id.", "ID")],
            ["transactional-id"],
            "describe --transactional-id billing-1",
        ),
        "describe-producers": Subcommand(
            "Describe what a partition remembers of its producers.",
            [
                Option("broker-id", "Ask this broker, which has a replica, instead of the leader.", "N"),
                TOPIC,
                PARTITION,
            ],
            ["topic", "partition"],
            "describe-producers --topic orders --partition 0",
        ),
        "abort": Subcommand(
            "Abort a hanging transaction: writes its marker, past its coordinator.",
            [
                TOPIC,
                PARTITION,
                Option("start-offset", "Where the transaction begins, as find-hanging shows it.", "OFFSET"),
                Option(
                    "producer-id",
                    "For brokers before 3.0, with the two epochs, instead of --start-offset.",
                    "N",
                ),
                Option("producer-epoch", "See --producer-id.", "N"),
                Option("coordinator-epoch", "See --producer-id.", "N"),
            ],
            ["topic", "partition"],
            "abort --topic orders --partition 0 --start-offset 4711",
        ),
        "find-hanging": Subcommand(
            "Find transactions that no coordinator will end.",
            [
                Option("broker-id", "Only partitions of which this broker has a replica.", "N"),
                Option(
                    "max-transaction-timeout",
                    "In minutes: what is younger may still end by itself.",
                    "MIN",
                    "15",
                ),
                Option("topic", "Only this topic.", "NAME"),
                Option("partition", "Only this partition; needs --topic.", "N"),
            ],
            [],
            "find-hanging --topic orders",
        ),
        "forceTerminateTransaction": Subcommand(
            "Abort the open transaction of a transactional id, and fence its producer.",
            [Option("transactionalId", "The transactional id.", "ID")],
            ["transactionalId"],
            "forceTerminateTransaction --transactionalId billing-1",
        ),
    },
)
TABLE = SUBCOMMANDS.table
