"""The log lines of a broker or a service on stderr: text for people, JSON for machines."""

import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import Final, TextIO

FORMATS = ("text", "json")
FORMAT_VARIABLE: Final = "PENSTOCK_LOG_FORMAT"
"""The variable of the environment that says how log lines look where no option does."""
_SHOWN: Final = {code: repr(chr(code))[1:-1] for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}
"""Characters that would end a line, or act on a terminal, as what stands for them: clients choose names that are logged."""

MAX_MESSAGE: Final = 10_000
"""Characters of a message. Clients choose names of up to 32 KB, and one request may hold many of them."""


class TextFormatter(logging.Formatter):
    """[2026-01-31 12:00:00,123] INFO message (penstock.broker): Kafka's own form, which log shippers know."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        message = _message(record)
        if not message.isprintable():
            message = message.translate(_SHOWN)
        line = f"[{moment},{int(record.msecs):03d}] {record.levelname} {message} ({record.name})"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    if len(message) > MAX_MESSAGE:
        return f"{message[:MAX_MESSAGE]}… ({len(message)} characters)"
    return message


def format_of(environment: Mapping[str, str]) -> str:
    """What the environment says, or text; so also for a word that is no format."""
    form = environment.get(FORMAT_VARIABLE, "").lower()
    return form if form in FORMATS else "text"


def configure(form: str, level: str, stream: TextIO | None = None) -> None:
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logger = logging.getLogger("penstock")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
    if form == "json" and stream is None:  # of libraries, too: who reads JSON reads nothing else
        root = logging.getLogger()
        root.handlers[:] = [handler]
        root.setLevel(logging.WARNING)
        logging.captureWarnings(True)
    # Who logged, on which thread and process costs more than the line itself, and nobody reads it.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
