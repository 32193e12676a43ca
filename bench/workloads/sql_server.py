"""The SQL server as its users start it: pull queries, a new statement's first result, thirty queries at once."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from bench.context import Context
from bench.measure import MEGABYTE, Row, Sample, Scale
from bench.servers import KAFKA_STREAMS, STREAMS
from bench.spark import tree_cpu_seconds, tree_memory_bytes
from bench.workloads.spark_streams import topic_pairs
from penstock.testing.processes import ProcessFailed, RunningProcess, start_process

SIDES = (KAFKA_STREAMS, STREAMS)
READY = r"penstock sql-server: listening on http://\S+:(\d+)"
CONTENT_TYPE = "application/vnd.ksql.v1+json"
TIMEOUT_S = 120.0
RETRY_S = 0.05
KEY_COUNT = 1_000
RECORD_COUNT = 20_000
CLIENTS, CLIENT_PROCESSES = 16, 4
QUERY_COUNT = 30
RATE = 20  # a second, for each query
FORMATS = "KEY_FORMAT='KAFKA', VALUE_FORMAT='DELIMITED'"


def declared(stream: str, topic: str) -> str:
    return f"CREATE STREAM {stream} (K STRING KEY, V STRING) WITH (KAFKA_TOPIC='{topic}', {FORMATS});"


def stateless(stream: str, target: str, source: str) -> str:
    return (
        f"CREATE STREAM {stream} WITH (KAFKA_TOPIC='{target}', PARTITIONS=1) AS "
        f"SELECT K, UCASE(V) AS V FROM {source} WHERE V NOT LIKE '%!';"
    )


def lookup(number: int) -> dict[str, str]:
    """A request, as the client ask_http wants it."""
    text = f"SELECT * FROM COUNTS WHERE K = 'k{number % KEY_COUNT}';"
    body = json.dumps({"ksql": text, "streamsProperties": {}})
    return {"method": "POST", "path": "/query", "content_type": CONTENT_TYPE, "body": body}


class Asked:
    """A server that runs, and what it is asked."""

    def __init__(self, process: RunningProcess, port: int) -> None:
        self.process, self.port = process, port

    def post(self, path: str, text: str) -> Any:
        properties = {"ksql.streams.auto.offset.reset": "earliest"}
        body = json.dumps({"ksql": text, "streamsProperties": properties}).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = Request(url, body, {"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE})
        try:
            with urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise ProcessFailed(f"{text} is refused: {error.read().decode()[:1000]}") from None

    def wait_for_count(self) -> None:
        """Until the table has all records of the first key."""
        deadline = time.monotonic() + TIMEOUT_S
        text = "SELECT N FROM COUNTS WHERE K = 'k0';"
        while time.monotonic() < deadline:
            rows = [each["row"]["columns"] for each in self.post("/query", text) if "row" in each]
            if rows == [[RECORD_COUNT // KEY_COUNT]]:
                return
            time.sleep(RETRY_S)
        raise self.process.failure(f"the table has {rows} and not all records")


@contextmanager
def sql_server(context: Context) -> Iterator[Asked]:
    with context.fresh_directory() as directory:
        process = _start(context, directory)
        try:
            yield Asked(process, int(process.wait_for_line(READY, timeout_s=TIMEOUT_S)[1]))
        finally:
            process.stop(timeout_s=TIMEOUT_S)


def _start(context: Context, directory: Path) -> RunningProcess:
    given = {
        "listeners": "http://127.0.0.1:0",
        "bootstrap.servers": context.server().bootstrap,
        "ksql.service.id": f"bench_{context.round_number}_",
    }
    file = directory / "sql.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    command = [sys.executable, "-m", "penstock", "sql-server", "--config", str(file)]
    return start_process(command, name="SQL server", log_path=directory / "sql.log")


class SqlServer:
    name = "streams-sql"
    server_names = (STREAMS,)
    about = f"penstock sql-server: pull queries by key, the first result of a new query, {QUERY_COUNT} queries at once"
    rows = (
        Row("pull_p50_ms", "pull query by key, p50", "ms", "lower", 3, bounds="value", sides=SIDES),
        Row("pull_p99_ms", "… p99", "ms", "lower", None, sides=SIDES),
        Row(
            "pulls",
            f"pull queries by key, {CLIENTS} clients",
            "queries/s",
            "higher",
            3_000,
            "1,000 requests",
            "value",
            sides=SIDES,
        ),
        Row(
            "first_s",
            "statement sent to its first result, session warm",
            "s",
            "lower",
            3,
            bounds="value",
            sides=SIDES,
        ),
        Row(
            "queries_p50_ms",
            f"{QUERY_COUNT} persistent queries, a stateless one, p50",
            "ms",
            "lower",
            10,
            "1,000 records",
            "value",
            sides=SIDES,
        ),
        Row("queries_p99_ms", "… p99", "ms", "lower", None, sides=SIDES),
        Row(
            "memory_mb",
            "… memory of the server and Spark",
            "MB",
            "lower",
            2_500,
            bounds="value",
            sides=SIDES,
        ),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        values: dict[str, float] = {}
        cpu: dict[str, float] = {}
        source = context.kept_topic(
            "sql-records",
            partition_count=1,
            filler="stream_records",
            record_count=RECORD_COUNT,
            key_count=KEY_COUNT,
            is_table=False,
        )
        with sql_server(context) as server, ExitStack() as stack:
            # Records that are there keep the pairs of topics until the server has stopped reading them.
            pairs = stack.enter_context(topic_pairs(context, "streams-sql", QUERY_COUNT - 1))
            server.post("/ksql", declared("RECORDS", source))
            server.post("/ksql", "CREATE TABLE COUNTS AS SELECT K, COUNT(*) AS N FROM RECORDS GROUP BY K;")
            server.wait_for_count()
            context.settle()
            values |= self._one_client(context, server)
            values["pulls"], cpu["pulls"] = self._many_clients(context, server)
            (_, first_target), *others = pairs
            values["first_s"] = self._first_result(context, server, first_target)
            for number, (given, target) in enumerate(others):
                server.post("/ksql", declared(f"GIVEN_{number}", given))
                server.post("/ksql", stateless(f"PASSED_{number}", target, f"GIVEN_{number}"))
            result = context.client(
                "stream_latency",
                timeout_s=TIMEOUT_S,
                topics=others,
                rate=RATE,
                warm_up_s=3,
                seconds=context.scale.pick(full=6, quick=3),
                spark_pid=server.process.pid,
            )
            values["memory_mb"] = tree_memory_bytes(server.process.pid) / MEGABYTE
            values["queries_p50_ms"], values["queries_p99_ms"] = result["p50_ms"], result["p99_ms"]
            cpu["queries_p50_ms"] = result["spark_cpu_s"] / result["record_count"] * 1000
            for (entity,) in [server.post("/ksql", "SHOW QUERIES;")]:
                for query in entity["queries"]:
                    server.post("/ksql", f"TERMINATE {query['id']};")
        return Sample(values, cpu)

    def _one_client(self, context: Context, server: Asked) -> dict[str, float]:
        with requests_file() as path:
            done = self._ask(context, server, path, connections=1)
        return {"pull_p50_ms": done["p50_ms"], "pull_p99_ms": done["p99_ms"]}

    def _many_clients(self, context: Context, server: Asked) -> tuple[float, float]:
        """Queries/s, and the server's CPU time for 1,000 of them."""
        with requests_file() as path, ExitStack() as stack:
            before = tree_cpu_seconds(server.process.pid)
            options = self._options(context, server, path, connections=CLIENTS // CLIENT_PROCESSES)
            clients = [
                stack.enter_context(context.background_client("ask_http", **options))
                for _ in range(CLIENT_PROCESSES)
            ]
            done = [client.result() for client in clients]
            spent = tree_cpu_seconds(server.process.pid) - before
        return sum(each["per_second"] for each in done), spent / sum(each["answered"] for each in done) * 1000

    def _ask(self, context: Context, server: Asked, path: str, *, connections: int) -> dict[str, float]:
        done: dict[str, float] = context.client(
            "ask_http", **self._options(context, server, path, connections=connections)
        )
        return done

    @staticmethod
    def _options(context: Context, server: Asked, path: str, *, connections: int) -> dict[str, Any]:
        return {
            "port": server.port,
            "connections": connections,
            "requests": path,
            "warm_up_s": 1,
            "seconds": context.scale.pick(full=4, quick=2),
        }

    @staticmethod
    def _first_result(context: Context, server: Asked, target: str) -> float:
        """From before the statement is sent. Its records wait in their topic."""
        with context.background_client("first_arrival", topic=target) as client:
            began_s = time.monotonic()
            server.post("/ksql", stateless("FIRST", target, "RECORDS"))
            arrived_s: float = client.result()["monotonic_s"]
        return arrived_s - began_s


@contextmanager
def requests_file() -> Iterator[str]:
    with NamedTemporaryFile("w") as file:  # too long for a command line
        json.dump([lookup(number) for number in range(KEY_COUNT)], file)
        file.flush()
        yield file.name
