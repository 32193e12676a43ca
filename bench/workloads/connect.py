"""Connectors, ours beside Apache's Connect: lines and records, a record's way, idle connectors, a worker that is killed."""

import os
import time
from pathlib import Path

from bench.clients.stream_drain import Moment, watch
from bench.connect_workers import DISTRIBUTED, PROCESSES, STANDALONE, Worker, wait_for, workers
from bench.context import Context
from bench.measure import MEGABYTE, Row, Sample, Scale
from bench.servers import CONNECT, KAFKA_CONNECT
from bench.spark import tree_cpu_seconds, tree_memory_bytes
from bench.topics import create_topic

SIDES = (KAFKA_CONNECT, CONNECT)
LINE_BYTES = 1000
SKIPPED = 1 / 3  # of the records, to warm up
MILLION = 1_000_000
CLIENT_TIMEOUT_S = 300.0
IDLE_COUNT = 50
KILLED_COUNT = 10
ON_SPARK = "local"


class FileConnectors:
    name = "connect-files"
    server_names = SIDES
    about = f"lines of {LINE_BYTES:,} B from a file to a topic of one partition, and back; the first third is not counted"
    rows = (
        Row("source", "file to topic", "records/s", "higher", 1.0, "million records", sides=SIDES),
        Row("source_cpu", "… file to topic, CPU", "s per million records", "lower", 1.5, sides=SIDES),
        Row("sink", "topic to file", "records/s", "higher", 1.0, "million records", sides=SIDES),
        Row("sink_cpu", "… topic to file, CPU", "s per million records", "lower", 1.5, sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        count = context.scale.pick(full=600_000, quick=300_000)
        name = f"connect-files-{context.kind.name}"
        with context.topic(name, partition_count=1) as topic, workers(context, STANDALONE) as (worker,):
            source = self._read(context, worker, topic, count)
            context.settle()
            sink = self._write(worker, topic, count)
        values: dict[str, float] = {}
        cpu: dict[str, float] = {}
        for key, done in (("source", source), ("sink", sink)):
            values[key] = done["records"] / done["seconds"]
            cpu[key] = values[f"{key}_cpu"] = done["cpu_seconds"] / done["records"] * MILLION
        return Sample(values, cpu)

    @staticmethod
    def _read(context: Context, worker: Worker, topic: str, count: int) -> dict[str, float]:
        lines = worker.process.log_path.with_name("lines.txt")
        with lines.open("w") as file:
            for number in range(count):
                file.write(f"{number:010} ".ljust(LINE_BYTES - 1, "abcdefgh"[number % 8]) + "\n")
        context.settle()
        with context.background_client(
            "stream_drain",
            timeout_s=CLIENT_TIMEOUT_S,
            topic=topic,
            skipped=int(count * SKIPPED),
            expected=count,
            pid=worker.pid,
        ) as client:
            client.said()
            worker.start("lines", {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic})
            done: dict[str, float] = client.result()
        worker.stop("lines")
        lines.unlink()
        return done

    @staticmethod
    def _write(worker: Worker, topic: str, count: int) -> dict[str, float]:
        copy = worker.process.log_path.with_name("copy.txt")
        copy.touch()

        def look() -> Moment:
            return Moment(
                time.perf_counter(), copy.stat().st_size // LINE_BYTES, tree_cpu_seconds(worker.pid)
            )

        worker.start("copy", {"connector.class": "FileStreamSink", "file": str(copy), "topics": topic})
        begun, ended = watch(look, int(count * SKIPPED), count)
        worker.stop("copy")
        copy.unlink()
        return {
            "seconds": ended.at_s - begun.at_s,
            "records": ended.records - begun.records,
            "cpu_seconds": ended.cpu_s - begun.cpu_s,
        }


class SourceLatency:
    name = "connect-latency"
    server_names = SIDES
    rate = 1_000
    about = f"a source with three transforms, {rate:,} records/s of 100 B: from when a record is due to an independent consumer"
    rows = (
        Row("p50_ms", "source with three transforms, p50", "ms", "lower", 1.0, "1,000 records", sides=SIDES),
        Row("p99_ms", "source with three transforms, p99", "ms", "lower", None, sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        topic = f"connect-latency-{context.kind.name}-r{context.round_number}"
        create_topic(context.server(), topic, partition_count=1)
        config = {
            "connector.class": "PacedSourceConnector",
            "topic": topic.removesuffix(f"-r{context.round_number}"),
            "rate": str(self.rate),
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "transforms": "hoist,site,route",
            "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
            "transforms.hoist.field": "line",
            "transforms.site.type": "org.apache.kafka.connect.transforms.InsertField$Value",
            "transforms.site.static.field": "site",
            "transforms.site.static.value": "north",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": "(.*)",
            "transforms.route.replacement": f"$1-r{context.round_number}",
        }
        with workers(context, STANDALONE) as (worker,):
            worker.start("paced", config)
            done = context.client(
                "connect_latency",
                timeout_s=CLIENT_TIMEOUT_S,
                topic=topic,
                pid=worker.pid,
                warm_up_s=context.scale.pick(full=8, quick=5),
                seconds=context.scale.pick(full=10, quick=4),
            )
        spent = done["cpu_seconds"] / done["record_count"] * 1000
        return Sample({"p50_ms": done["p50_ms"], "p99_ms": done["p99_ms"]}, {"p50_ms": spent})


class IdleConnectors:
    name = "connect-idle"
    server_names = SIDES
    about = f"memory of a worker with {IDLE_COUNT} connectors that have nothing to do; ours on Spark and with processes"
    rows = (
        Row("idle_mb", f"{IDLE_COUNT} idle connectors", "MB", "lower", 1500, bounds="value", sides=SIDES),
        Row("idle_processes_mb", "… ours in processes", "MB", "lower", 1500, bounds="value", sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=1, quick=1)

    def run(self, context: Context) -> Sample:
        first = self._measure(context, ON_SPARK)
        if context.kind.name == KAFKA_CONNECT:
            return Sample({"idle_mb": first, "idle_processes_mb": first})
        return Sample({"idle_mb": first, "idle_processes_mb": self._measure(context, PROCESSES)})

    @staticmethod
    def _measure(context: Context, master: str) -> float:
        group = f"idle-{context.kind.name}-{master}-r{context.round_number}"
        with workers(context, DISTRIBUTED, master=master, group=group) as (worker,):
            folder = worker.process.log_path.parent
            start_idle(worker, folder, IDLE_COUNT)
            wait_for(lambda: len(worker.running()) == IDLE_COUNT, "all tasks", worker)
            return tree_memory_bytes(worker.pid) / MEGABYTE


class KilledWorker:
    name = "connect-killed"
    server_names = SIDES
    about = (
        f"two workers with {KILLED_COUNT} connectors, one is killed: until the other one has all of them running. Ours is the "
        "leader, with tasks in processes and on Spark"
    )
    rows = (
        Row("killed_s", "a worker killed: tasks running again", "s", "lower", 3, bounds="value", sides=SIDES),
        Row("killed_spark_s", "… ours on Spark", "s", "lower", None, bounds="value", sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        first = self._measure(context, PROCESSES)
        if context.kind.name == KAFKA_CONNECT:
            return Sample({"killed_s": first, "killed_spark_s": first})
        return Sample({"killed_s": first, "killed_spark_s": self._measure(context, ON_SPARK)})

    @staticmethod
    def _measure(context: Context, master: str) -> float:
        group = f"killed-{context.kind.name}-{master}-r{context.round_number}"
        with workers(context, DISTRIBUTED, count=2, master=master, group=group) as both:
            first, second = both
            start_idle(first, first.process.log_path.parent, KILLED_COUNT)
            wait_for(lambda: len(first.running()) == KILLED_COUNT, "all tasks", first)
            victim, survivor = both
            if context.kind.name == CONNECT and not victim.leads():
                victim, survivor = second, first
            here = f"127.0.0.1:{survivor.port}"
            victim.process.kill()
            began = time.perf_counter()
            wait_for(
                lambda: list(survivor.running().values()) == [{here}] * KILLED_COUNT,
                "all tasks again",
                survivor,
            )
            return time.perf_counter() - began


def start_idle(worker: Worker, folder: Path, count: int) -> None:
    """Sources of empty files."""
    for number in range(count):
        file = folder / f"empty-{number}"
        file.touch()
        config = {"connector.class": "FileStreamSource", "file": os.fspath(file), "topic": f"empty-{number}"}
        worker.start(f"idle-{number}", config)
