"""Rows from a topic into a PostgreSQL table, by upserts: our JDBC sink beside Debezium's on Apache's Connect."""

import subprocess
import tarfile
import time
from pathlib import Path

from psycopg.errors import UndefinedTable

from bench.clients.stream_drain import Moment, watch
from bench.connect_workers import DISTRIBUTED, PLUGINS, PROCESSES, Worker, workers
from bench.context import ROOT, Context
from bench.measure import Row, Sample, Scale
from bench.servers import CONNECT, KAFKA_CONNECT
from bench.spark import tree_cpu_seconds
from tests.connect.databases import PostgreSql

SIDES = (KAFKA_CONNECT, CONNECT)
TASKS, PARTITIONS = 2, 4
SKIPPED = 1 / 3  # of the rows, to warm up
MILLION = 1_000_000
CLIENT_TIMEOUT_S = 300.0
PAUSE_S = 0.3  # between two looks: each counts the rows
DEBEZIUM = "3.3.1.Final"
COLLECT_TIMEOUT_S = 300


class JdbcSinks:
    name = "connect-jdbc"
    server_names = SIDES
    about = (
        f"rows as JSON with their schema, from a topic of {PARTITIONS} partitions, {TASKS} tasks, into PostgreSQL by upserts "
        f"with a key of the record; beside Debezium's sink {DEBEZIUM}. The first third is not counted"
    )
    rows = (
        Row("rows", "JDBC sink, PostgreSQL, upsert", "rows/s", "higher", 1.0, "million rows", sides=SIDES),
        Row("rows_cpu", "… upsert, CPU", "s per million rows", "lower", None, sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        count = context.scale.pick(full=600_000, quick=300_000)
        is_apache = context.kind.name == KAFKA_CONNECT
        topic = context.kept_topic(
            "connect-rows", partition_count=PARTITIONS, filler="produce_rows", timeout_s=CLIENT_TIMEOUT_S, record_count=count
        )  # fmt: skip
        group = f"bench-jdbc-{context.kind.name}-r{context.round_number}"
        plugins = _debezium() if is_apache else PLUGINS
        with (
            PostgreSql() as database,
            workers(context, DISTRIBUTED, master=PROCESSES, group=group, plugins=plugins) as (worker,),
        ):
            config = _debezium_sink(database) if is_apache else _our_sink(database)
            context.settle()
            begun, ended = _drain(worker, f"rows-{group}", database, {**config, "topics": topic}, count)
        rows = ended.records - begun.records
        spent = (ended.cpu_s - begun.cpu_s) / rows * MILLION
        return Sample({"rows": rows / (ended.at_s - begun.at_s), "rows_cpu": spent}, {"rows": spent})


def _drain(
    worker: Worker, name: str, database: PostgreSql, config: dict[str, str], count: int
) -> tuple[Moment, Moment]:
    def look() -> Moment:
        time.sleep(PAUSE_S)
        return Moment(time.perf_counter(), _rows(database), tree_cpu_seconds(worker.pid))

    worker.start(name, config)  # by which its group has another name each time
    return watch(look, int(count * SKIPPED), count)


def _rows(database: PostgreSql) -> int:
    """Statistics would cost the database less, and come late."""
    try:
        return int(database.run("SELECT count(*) FROM rows")[0][0])
    except UndefinedTable:
        return 0


def _common() -> dict[str, str]:
    return {
        "tasks.max": str(TASKS),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "true",
        "insert.mode": "upsert",
    }


def _our_sink(database: PostgreSql) -> dict[str, str]:
    return {
        **_common(), **database.login, "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "table.name.format": "rows", "pk.mode": "record_value", "pk.fields": "id", "auto.create": "true",
    }  # fmt: skip


def _debezium_sink(database: PostgreSql) -> dict[str, str]:
    return {
        **_common(), "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "connection.url": database.jdbc_url, "connection.username": "penstock", "connection.password": database.password,
        "collection.name.format": "rows", "primary.key.mode": "record_value", "primary.key.fields": "id",
        "schema.evolution": "basic", "batch.size": "3000", "consumer.override.max.poll.records": "3000",
    }  # fmt: skip


def _debezium() -> Path:
    """The folder of its plugin, from Maven's registry."""
    cache = ROOT / ".cache" / f"debezium-jdbc-{DEBEZIUM}"
    if not (cache / "plugin").exists():
        cache.mkdir(parents=True, exist_ok=True)
        artifact = f"io.debezium:debezium-connector-jdbc:{DEBEZIUM}:tar.gz:plugin"
        subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={cache}"],
            check=True, capture_output=True, timeout=COLLECT_TIMEOUT_S,
        )  # fmt: skip
        with tarfile.open(next(cache.glob("*.tar.gz"))) as archive:
            archive.extractall(cache / "partial", filter="data")
        (cache / "partial").rename(cache / "plugin")
    return cache / "plugin"
