"""connect-distributed: a worker of Connect with Kafka's files of properties."""

from penstock.cli.kafka.options import Option, Options, OptionTable, UsageError

USAGE = "USAGE: connect-distributed [-daemon] worker.properties"

TABLE = OptionTable(
    "connect-distributed",
    USAGE,
    [Option("daemon", "Start it in the background; what it says goes to $LOG_DIR/connect.out (./logs).")],
    client_options=(),
    examples=["connect-distributed worker.properties"],
)


def execute(given: Options) -> int:
    words = given.words
    if not words or len(words) > 1:
        raise UsageError(USAGE)
    if given.has("daemon"):
        from penstock.cli.kafka.server_start import start_behind

        return start_behind("connect_distributed", words, "connect.out")
    from penstock.cli.connect_start import start

    return start(words[0], words[1:], is_standalone=False)
