"""connect-mirror-maker: the flows of an mm2.properties in one process."""

from penstock.cli.kafka.options import Option, Options, OptionTable, UsageError

USAGE = "USAGE: connect-mirror-maker [-daemon] [--clusters NAMES] mm2.properties"

TABLE = OptionTable(
    "connect-mirror-maker",
    USAGE,
    [
        Option(
            "daemon",
            "Start it in the background; what it says goes to $LOG_DIR/connect-mirror-maker.out (./logs).",
        ),
        Option("clusters", "Only flows into these clusters: names with commas between them.", "NAMES"),
    ],
    client_options=(),
    examples=["connect-mirror-maker --clusters B mm2.properties"],
)


def execute(given: Options) -> int:
    words = given.words
    if not words:
        raise UsageError(USAGE)
    chosen = [name for name in (given.value("clusters") or "").split(",") if name] + words[1:]
    if given.has("daemon"):
        from penstock.cli.kafka.server_start import start_behind

        clusters = ["--clusters", ",".join(chosen)] if chosen else []
        return start_behind("connect_mirror_maker", [*clusters, words[0]], "connect-mirror-maker.out")
    from penstock.cli.mirror_start import STATUS_S, run

    return run(words[0], chosen, {}, STATUS_S)
