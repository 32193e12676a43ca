"""Sinks that write columns: JSON objects from a topic to parquet files and to a lake's table, by Penstock's Connect alone."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.clients.stream_drain import Moment, watch
from bench.connect_workers import DISTRIBUTED, PROCESSES, Worker, workers
from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.servers import CONNECT, KAFKA_CONNECT
from bench.spark import tree_cpu_seconds

SIDES = (KAFKA_CONNECT, CONNECT)
TASKS, PARTITIONS = 2, 4
FLUSH_SIZE = 100_000
COMMIT_MS = 1_000
SKIPPED = 1 / 3  # of the records, to warm up
MILLION = 1_000_000
CLIENT_TIMEOUT_S = 300.0
TABLE = "bench.orders"


class LakeSinks:
    name = "connect-lake"
    server_names = (CONNECT,)
    about = (
        f"JSON objects of 80 B that wait in a topic of {PARTITIONS} partitions, {TASKS} tasks, until they are in finished files "
        "or committed snapshots; the first third is not counted"
    )
    rows = (
        Row("parquet", "parquet sink", "records/s", "higher", 500_000, "million records", "value", SIDES),
        Row("parquet_cpu", "… parquet, CPU", "s per million records", "lower", None, sides=SIDES),
        Row("lake", "lake sink (Iceberg)", "records/s", "higher", 500_000, "million records", "value", SIDES),
        Row("lake_cpu", "… lake, CPU", "s per million records", "lower", None, sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        count = context.scale.pick(full=3_200_000, quick=1_600_000)
        topic = context.kept_topic(
            "connect-json", partition_count=PARTITIONS, filler="produce_json", timeout_s=CLIENT_TIMEOUT_S, record_count=count
        )  # fmt: skip
        values: dict[str, float] = {}
        cpu: dict[str, float] = {}
        group = f"bench-lake-r{context.round_number}"
        with workers(context, DISTRIBUTED, master=PROCESSES, group=group) as (worker,):
            folder = worker.process.log_path.parent
            sinks = {"parquet": _parquet(folder), "lake": _lake(folder)}
            for key, (config, written) in sinks.items():
                context.settle()
                done = self._drain(worker, f"{key}-{group}", {**config, "topics": topic}, written, count)
                values[key] = done["records"] / done["seconds"]
                cpu[key] = values[f"{key}_cpu"] = done["cpu_seconds"] / done["records"] * MILLION
        return Sample(values, cpu)

    @staticmethod
    def _drain(
        worker: Worker, name: str, config: dict[str, str], written: Callable[[], int], count: int
    ) -> dict[str, float]:
        def look() -> Moment:
            return Moment(time.perf_counter(), written(), tree_cpu_seconds(worker.pid))

        worker.start(name, config)
        begun, ended = watch(look, int(count * SKIPPED), count)
        worker.stop(name)
        return {
            "seconds": ended.at_s - begun.at_s,
            "records": ended.records - begun.records,
            "cpu_seconds": ended.cpu_s - begun.cpu_s,
        }


def _config(kind: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": kind, "tasks.max": str(TASKS), "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false", **more,
    }  # fmt: skip


def _parquet(folder: Path) -> tuple[dict[str, str], Callable[[], int]]:
    files = folder / "parquet"
    config = _config("io.confluent.connect.s3.S3SinkConnector", **{
        "store.url": files.as_uri(), "flush.size": str(FLUSH_SIZE),
        "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
    })  # fmt: skip
    return (
        config,
        lambda: FLUSH_SIZE * sum(not each.name.startswith(".") for each in files.rglob("*.parquet")),
    )


def _lake(folder: Path) -> tuple[dict[str, str], Callable[[], int]]:
    catalog = f"sqlite:///{folder}/catalog.db"
    config = _config("org.apache.iceberg.connect.IcebergSinkConnector", **{
        "iceberg.tables": TABLE, "iceberg.tables.auto-create-enabled": "true", "iceberg.catalog.uri": catalog,
        "iceberg.catalog.warehouse": (folder / "lake").as_uri(), "iceberg.control.commit.interval-ms": str(COMMIT_MS),
    })  # fmt: skip
    return config, lambda: _rows_of(folder / "lake")


def _rows_of(warehouse: Path) -> int:
    """By the newest metadata of the table, which names its current snapshot."""
    for file in sorted(warehouse.rglob("*.metadata.json"), reverse=True):
        try:
            metadata: dict[str, Any] = json.loads(file.read_text())
        except ValueError:
            continue  # it is just being written
        current = metadata.get("current-snapshot-id")
        snapshots = {each["snapshot-id"]: each for each in metadata.get("snapshots", ())}
        return int(snapshots[current]["summary"]["total-records"]) if current in snapshots else 0
    return 0
