"""The commands of kafka-transactions and their options. An option may stand before or after the command."""

from __future__ import annotations

from penstock.cli.kafka.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option,
    OptionError,
    Options,
    OptionTable,
    UsageError,
)

PURPOSE = (
    "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect and "
    "recover from hanging transactions."
)
TOPIC = Option("topic", "The topic.", "NAME")
PARTITION = Option("partition", "The number of the partition.", "N")

# Purpose, options, which of them are required, an example.
COMMANDS: dict[str, tuple[str, list[Option], list[str], str]] = {
    "list": (
        "List transactions.",
        [
            Option("duration-filter", "Only those that have been open for longer; all when below 0.", "MS"),
            Option(
                "transactional-id-pattern", "Only ids that this regular expression (RE2) matches.", "REGEX"
            ),
        ],
        [],
        "list --duration-filter 60000",
    ),
    "describe": (
        "Describe the state of an active transactional-id.",
        [Option("transactional-id", "The transactional id.", "ID")],
        ["transactional-id"],
        "describe --transactional-id billing-1",
    ),
    "describe-producers": (
        "Describe what a partition remembers of its producers.",
        [
            Option("broker-id", "Ask this broker, which has a replica, instead of the leader.", "N"),
            TOPIC,
            PARTITION,
        ],
        ["topic", "partition"],
        "describe-producers --topic orders --partition 0",
    ),
    "abort": (
        "Abort a hanging transaction: writes its marker, past its coordinator.",
        [
            TOPIC,
            PARTITION,
            Option("start-offset", "Where the transaction begins, as find-hanging shows it.", "OFFSET"),
            Option(
                "producer-id", "For brokers before 3.0, with the two epochs, instead of --start-offset.", "N"
            ),
            Option("producer-epoch", "See --producer-id.", "N"),
            Option("coordinator-epoch", "See --producer-id.", "N"),
        ],
        ["topic", "partition"],
        "abort --topic orders --partition 0 --start-offset 4711",
    ),
    "find-hanging": (
        "Find transactions that no coordinator will end.",
        [
            Option("broker-id", "Only partitions of which this broker has a replica.", "N"),
            Option(
                "max-transaction-timeout", "In minutes: what is younger may still end by itself.", "MIN", "15"
            ),
            Option("topic", "Only this topic.", "NAME"),
            Option("partition", "Only this partition; needs --topic.", "N"),
        ],
        [],
        "find-hanging --topic orders",
    ),
    "forceTerminateTransaction": (
        "Abort the open transaction of a transactional id, and fence its producer.",
        [Option("transactionalId", "The transactional id.", "ID")],
        ["transactionalId"],
        "forceTerminateTransaction --transactionalId billing-1",
    ),
}


def _table(purpose: str, options: list[Option], examples: list[str]) -> OptionTable:
    start = "kafka-transactions --bootstrap-server localhost:9092"
    return OptionTable(
        "kafka-transactions",
        purpose,
        [BOOTSTRAP, COMMAND_CONFIG, *options],
        examples=[f"{start} {example}" for example in examples],
    )


def _all_options() -> list[Option]:
    by_name = {option.name: option for _, options, _, _ in COMMANDS.values() for option in options}
    return list(by_name.values())


TABLE = _table(
    PURPOSE + "\nCommands:\n" + "\n".join(f"  {name:<26} {entry[0]}" for name, entry in COMMANDS.items()),
    _all_options(),
    [entry[3] for entry in COMMANDS.values()],
)


def table_for(argv: list[str]) -> OptionTable:
    """The table of the command that is named; of all of them where none is."""
    try:
        words = TABLE.parse(argv).words
    except OptionError:
        return TABLE
    if not words or words[0] not in COMMANDS:
        return TABLE
    purpose, options, _, example = COMMANDS[words[0]]
    return _table(purpose, options, [example])


def check(given: Options) -> str:
    """The command; UsageError when something that it needs is missing."""
    if not given.words:
        raise UsageError("too few arguments: name a command")
    command = given.words[0]
    if command not in COMMANDS:
        raise UsageError(f"invalid choice: '{command}' (choose from {', '.join(COMMANDS)})")
    for name in ("bootstrap-server", *COMMANDS[command][2]):
        if not given.has(name):
            raise UsageError(f"argument --{name} is required")
    return command


def required_integer(given: Options, name: str) -> int:
    """Of an option that is required or has a default."""
    number = given.integer(name)
    assert number is not None
    return number
