"""Running a tool: version and help, exit codes, and every failure as one line."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn

import penstock
from penstock.cli.failures import TRACE_VARIABLE, Refused, Unreachable, UserError, unexpected
from penstock.cli.kafka.options import OptionError, Options, OptionTable, UsageError

KAFKA_VERSION = "4.3.1"
INTERRUPTED = 130

Execute = Callable[[Options], int]


def run(table: OptionTable, execute: Execute, argv: list[str]) -> int:
    """The tool's exit code. `execute` prints Kafka's own wording of what Kafka words; the rest is worded here."""
    try:
        given = table.parse(argv)
        if given.has("help") or not argv:
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


def leave(code: int) -> NoReturn:
    """Ends the process without the teardown of librdkafka's threads: everything that matters is flushed and closed by then."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            pass
    os._exit(code)
