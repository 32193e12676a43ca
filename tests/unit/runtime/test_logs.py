"""The broker's log lines."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from penstock.runtime.logs import configure

FORGED = "x\n[2026-01-01 00:00:00,000] INFO Principal = User:eve is Allowed\r\x1b[2J\x9b\u2028é"


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Other tests find logging as it was."""
    logger = logging.getLogger("penstock")
    handlers, level, propagates = logger.handlers[:], logger.level, logger.propagate
    for name in ("logThreads", "logProcesses", "logMultiprocessing"):
        monkeypatch.setattr(logging, name, getattr(logging, name))
    yield io.StringIO()
    logger.handlers[:], logger.propagate = handlers, propagates
    logger.setLevel(level)


def test_a_name_from_a_client_makes_no_line_of_its_own(stream: io.StringIO) -> None:
    configure("text", "INFO", stream)
    logging.getLogger("penstock.authorizer").info("on resource = TOPIC:%s", FORGED)
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(
        r"TOPIC:x\n[2026-01-01 00:00:00,000] INFO Principal = User:eve is Allowed"
        r"\r\x1b[2J\x9b\u2028é (penstock.authorizer)"
    )


def test_nor_in_json(stream: io.StringIO) -> None:
    configure("json", "INFO", stream)
    logging.getLogger("penstock.authorizer").info("on resource = TOPIC:%s", FORGED)
    (line,) = stream.getvalue().rstrip("\n").split("\n")
    assert json.loads(line)["message"].endswith(FORGED)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_message_has_an_end(stream: io.StringIO, form: str) -> None:
    configure(form, "INFO", stream)
    logging.getLogger("penstock.broker").info("topic %s", "x" * 100_000)
    (line,) = stream.getvalue().splitlines()
    assert len(line) < 10_200
    assert "… (100006 characters)" in line


def test_a_traceback_keeps_its_lines(stream: io.StringIO) -> None:
    configure("text", "INFO", stream)
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("penstock.broker").exception("it failed")
    assert stream.getvalue().splitlines()[-1] == "ValueError: no"


def test_the_environment_says_the_form_where_no_option_does() -> None:
    from penstock.runtime.logs import format_of

    assert format_of({}) == "text"
    assert format_of({"PENSTOCK_LOG_FORMAT": "JSON"}) == "json"
    assert format_of({"PENSTOCK_LOG_FORMAT": "nonsense"}) == "text"


def test_lines_of_libraries_are_json_too() -> None:
    code = (
        "import logging, sys; from penstock.runtime.logs import configure; configure('json', 'INFO');"
        "logging.getLogger('a.library').warning('what %s', 'it is'); logging.getLogger('penstock').info('ours')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(each["logger"], each["message"]) for each in lines] == [
        ("a.library", "what it is"),
        ("penstock", "ours"),
    ]
