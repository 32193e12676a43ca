"""SQL servers as processes of their own, and what tests ask them."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.clients.driver import wait_until
from tests.web.services import Reply, WebProcess

V1 = "application/vnd.ksql.v1+json"
EARLIEST = {"auto.offset.reset": "earliest"}
_numbers = itertools.count(1)


def bugs(log: str) -> list[str]:
    """Stack traces; not those of Spark's Python daemon, which the end of a worker may surprise when all is being stopped."""
    traces = [each[:2000] for each in log.split("Traceback")[1:]]
    return [each for each in traces if 'File "' in each and "pyspark/daemon.py" not in each[:1000]]


class SqlServerProcess(WebProcess):
    """With a service id of its own, unless it is told one."""

    def __init__(
        self,
        directory: Path,
        bootstrap: str,
        properties: Mapping[str, str] | None = None,
        *,
        name: str = "sql",
    ) -> None:
        directory.mkdir(exist_ok=True, parents=True)
        number = next(_numbers)
        given = {
            "listeners": "http://127.0.0.1:0",
            "bootstrap.servers": bootstrap,
            "ksql.service.id": f"tests_{os.getpid()}_{number}_",
            "idle.timeout.ms": "60000",
            **(properties or {}),
        }
        self.service_id = given["ksql.service.id"]
        file = directory / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        command = [sys.executable, "-m", "penstock", "sql-server", "--config", str(file)]
        super().__init__(command, directory / f"{name}.log", name=name)

    def ksql(self, text: str, properties: Mapping[str, str] = EARLIEST) -> list[dict[str, Any]]:
        """The entities; what is refused fails the test."""
        reply = self.refused(text, properties)
        assert reply.status == 200, reply.body.decode()
        found: list[dict[str, Any]] = reply.json()
        return found

    def refused(self, text: str, properties: Mapping[str, str] = EARLIEST) -> Reply:
        return self._post("/ksql", {"ksql": text, "streamsProperties": dict(properties)})

    def query(self, text: str, properties: Mapping[str, str] = EARLIEST) -> list[Any]:
        """All elements of a query that ends by itself."""
        reply = self.query_reply(text, properties)
        assert reply.status == 200, reply.body.decode()
        found: list[Any] = reply.json()
        return found

    def query_reply(self, text: str, properties: Mapping[str, str] = EARLIEST) -> Reply:
        return self._post("/query", {"ksql": text, "streamsProperties": dict(properties)})

    def rows(self, text: str, properties: Mapping[str, str] = EARLIEST) -> list[Any]:
        return [element["row"]["columns"] for element in self.query(text, properties) if "row" in element]

    def wait_for_rows(self, text: str, expected: list[Any]) -> None:
        """Of a pull query, in any order: it sees what has been worked off so far."""
        wanted = sorted(map(json.dumps, expected))
        found: list[str] = []

        def are_there() -> bool:
            nonlocal found
            found = sorted(map(json.dumps, self.rows(text)))
            return found == wanted

        try:
            wait_until(are_there, f"the rows of {text}")
        except AssertionError:
            assert found == wanted, self.log[-1500:]
            raise

    def query_ids(self) -> list[str]:
        (entity,) = self.ksql("SHOW QUERIES;")
        return [each["id"] for each in entity["queries"]]

    def kill(self) -> None:
        """With what it has started: Spark's JVM and its workers."""
        os.killpg(os.getpgid(self.process.pid), signal.SIGKILL)

    def _post(self, path: str, body: object) -> Reply:
        return self.ask("POST", path, body, {"Content-Type": V1, "Accept": V1})
