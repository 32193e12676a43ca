"""The SQL server as a service of `penstock up`, and the prompt in front of it."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

from tests.cli.boxes import TestBox
from tests.cli.conftest import BIN
from tests.sql.servers import bugs

TIMEOUT_S = 90.0
QUERY_STATEMENTS = """
SET 'auto.offset.reset' = 'earliest';
CREATE STREAM ORDERS (ID STRING KEY, AMOUNT INT) WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO ORDERS VALUES ('ana', 7);
INSERT INTO ORDERS VALUES ('ana', 8);
CREATE TABLE TOTALS AS SELECT ID, SUM(AMOUNT) AS TOTAL FROM ORDERS GROUP BY ID;
SELECT * FROM TOTALS WHERE TOTAL = 15 EMIT CHANGES LIMIT 1;
SELECT ID, AMOUNT FROM ORDERS EMIT CHANGES LIMIT 2;
SELECT TOTAL FROM TOTALS WHERE ID = 'ana';
"""
pytestmark = pytest.mark.timeout(300)


class Terminal:
    """The prompt as a person has it."""

    def __init__(self, *command: str) -> None:
        self.shown = ""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(command[0], list(command))

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, pattern: str) -> None:
        """In what is shown behind what was waited for before."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while (found := re.search(pattern, self.shown)) is None:
            assert time.monotonic() < deadline_s, self.shown
            if select.select([self._terminal], [], [], 0.1)[0]:
                text = os.read(self._terminal, 65536).decode(errors="replace")
                if "\x1b[6n" in text:
                    self.type("\x1b[1;1R")  # a terminal says where its cursor is
                self.shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
        self.shown = self.shown[found.end() :]

    def close(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            os.kill(self._pid, signal.SIGKILL)
            self.close()
        os.close(self._terminal)


def run_statements(url: str, *words: str) -> str:
    done = subprocess.run(
        [str(BIN / "ksql"), url, *words, "--execute", QUERY_STATEMENTS],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("secure", [False, True])
def test_up_starts_it_when_it_is_asked_for(tmp_path: Path, secure: bool) -> None:
    box = TestBox(tmp_path / "box")
    try:
        words = ["--secure"] if secure else []
        started = box.up_anew("--with", "sql", "--sql-port", "0", *words)
        assert started.code == 0, started.err
        assert started.err.index("broker-1 is up") < started.err.index("sql is up")
        found = next(each for each in box.status()["services"] if each["name"] == "sql")
        assert found["healthy"]
        url = f"http{'s' if secure else ''}://localhost:{found['port']}"
        login = ["--config-file", str(box.directory / "client.properties")] if secure else []
        shown = run_statements(url, *login)
        assert re.search(r"\|ana +\|15 +\|", shown), shown
        assert re.search(r"\|15 +\|\nQuery Completed", shown), shown
        if secure:
            refused = subprocess.run(
                [str(BIN / "ksql"), url, "-e", "SHOW STREAMS;"],
                capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            )  # fmt: skip
            assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
            assert "shows a certificate that is not trusted" in refused.stderr
        else:
            type_at_the_prompt(url, tmp_path)
        stopped = box.run("down")
        assert stopped.code == 0, stopped.err
        assert stopped.err.index("sql has stopped") < stopped.err.index("broker-1 has stopped")
        assert bugs((box.directory / "sql.log").read_text()) == []
    finally:
        box.close()


def type_at_the_prompt(url: str, home: Path) -> None:
    """As a person does: the program and the server's address, a statement, a query that is ended, and leaving."""
    with Terminal("/usr/bin/env", f"HOME={home}", str(BIN / "ksql"), url) as terminal:
        terminal.wait_for("ksql>")
        terminal.type("show streams;\r")
        terminal.wait_for(r" Stream Name +\| Kafka Topic +\| Key Format")
        terminal.wait_for(r" ORDERS +\| orders +\| KAFKA +\| JSON +\| false")
        terminal.wait_for("ksql>")
        terminal.type("SELECT *\rFROM NOT_THERE;\r")
        terminal.wait_for("NOT_THERE does not exist")
        terminal.wait_for("ksql>")
        terminal.type("SET 'auto.offset.reset' = 'earliest';\r")
        terminal.wait_for("Successfully changed")
        terminal.type("SELECT * FROM ORDERS EMIT CHANGES;\r")
        terminal.wait_for(r"\|ana +\|8 +\|")
        terminal.type("\x03")
        terminal.wait_for("Query terminated")
        terminal.wait_for("ksql>")
        terminal.type("exit\r")
        assert terminal.close() == 0
    assert "show streams;" in (home / ".penstock-ksql-history").read_text()
