"""Running a tool: version and help, exit codes, and every failure as one line."""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

import penstock
from penstock.cli.kafka.options import OptionError, Options, OptionTable, UsageError
from penstock.cli.unexpected import TRACE_VARIABLE, unexpected
from penstock.client.errors import Refused, Unreachable, UserError

KAFKA_VERSION = "4.3.1"
INTERRUPTED = 130

Execute = Callable[[Options], int]


def run(table: OptionTable, execute: Execute, argv: list[str]) -> int:
    """The tool's exit code. `execute` prints Kafka's own wording of what Kafka words; the rest is worded here."""
    try:
        given = table.parse(argv)
        if given.has("help") and not table.help_code:
            print(f"{table.purpose}\n{table.help().rstrip()}")
            return 0
        if given.has("help") or (not argv and table.needs_words):
            raise UsageError(table.purpose)
        if given.has("version"):
            print(f"{KAFKA_VERSION} (penstock {penstock.__version__})")
            return 0
        return execute(given)
    except UsageError as error:
        complain(f"{error}\n{table.help().rstrip()}")
    except OptionError as error:
        complain(str(error))
    except (Unreachable, UserError) as error:
        complain(f"{table.tool}: {error}")
    except Refused as error:
        complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except Exception as error:
        if os.environ.get(TRACE_VARIABLE):
            raise
        complain(f"{table.tool}: {unexpected(error)}")
    return 1


def complain(line: str) -> None:
    """To stderr, after all that stdout was given before, so that the two stay in order on a terminal."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    print(line, file=sys.stderr, flush=True)


def say(line: str) -> None:
    print(line, flush=True)


def leave(code: int) -> NoReturn:
    """Ends the process without the teardown of librdkafka's threads: everything that matters is flushed and closed by then."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            pass
    os._exit(code)


def print_table(headers: list[str], rows: list[list[str]]) -> None:
    """Each cell padded to its column and ended by a tab."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)))


def print_event(name: str, **fields: Any) -> None:
    """A line of the verifiable tools: JSON, with the time and the name first."""
    event = {"timestamp": int(time.time() * 1000), "name": name, **fields}
    print(json.dumps(event, separators=(",", ":"), ensure_ascii=False), flush=True)
