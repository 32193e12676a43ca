"""kafka-server-start: a broker with a server.properties of Kafka's, in this process or behind it."""

import os
import subprocess
import sys

from penstock.cli.kafka.options import Option, Options, OptionTable, UsageError
from penstock.client.errors import UserError

USAGE = "USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*"
OUTPUT_FILE = "kafkaServer.out"
"""In $LOG_DIR, or in the folder `logs`: what a broker says that was started with -daemon."""

TABLE = OptionTable(
    "kafka-server-start",
    USAGE,
    [
        Option(
            "daemon", f"Start it in the background; what it says goes to $LOG_DIR/{OUTPUT_FILE} (./logs)."
        ),
        Option("override", "A property that wins over the file; may be given many times.", "NAME=VALUE"),
    ],
    client_options=(),
    examples=[
        "kafka-server-start server.properties",
        "kafka-server-start -daemon server.properties --override log.dirs=./data --override broker.id=2",
    ],
)


def execute(given: Options) -> int:
    if len(given.words) != 1:
        raise UsageError(USAGE)
    overrides = given.values("override")
    for text in overrides:
        if not text.partition("=")[1]:
            raise UserError(f"Invalid command line properties: {text}")
    if given.has("daemon"):
        words = [given.words[0], *(f"--override={text}" for text in overrides)]
        return start_behind("server_start", words, OUTPUT_FILE)
    from penstock.cli.broker import main

    return main(["--config", given.words[0], *(word for text in overrides for word in ("--set", text))])


def start_behind(tool: str, words: list[str], output_file: str) -> int:
    """Does not wait for it, as Kafka's does not: the file of its output, and `kafka-broker-api-versions`, tell how it is."""
    directory = os.environ.get("LOG_DIR", "logs")
    try:
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, output_file), "wb") as output:
            subprocess.Popen(
                [sys.executable, "-m", "penstock.cli.kafka", tool, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        raise UserError(f"cannot write to {error.filename}: {error.strerror}") from None
    return 0
