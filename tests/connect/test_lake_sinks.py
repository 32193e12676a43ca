"""The object store sink and the lake sink at work, with a broker, an S3 server and a catalog: killed at any moment, every record
is there once."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyiceberg.catalog.sql import SqlCatalog

from penstock.connect import RetriableError, SinkRecord
from penstock.connect.connectors.columns import table_of
from penstock.connect.connectors.lake.catalogs import catalog_of
from penstock.connect.connectors.lake.offsets import offsets_of
from penstock.connect.connectors.lake.task import LakeTask
from penstock.connect.converters.registry import AvroConverter
from penstock.connect.plugins import plugins_of
from penstock.connect.tasks import TaskProgram, WorkerSettings
from penstock.connect.tasks.columnar_sink import decoder_of
from penstock.spark.tasks import LongJob, ProcessLauncher, ThreadLauncher
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.connect.databases import PostgreSql
from tests.connect.tasks_alone import sink_task
from tests.connect.workers import until
from tests.registry.registries import RegistryProcess

S3 = "io.confluent.connect.s3.S3SinkConnector"
LAKE = "org.apache.iceberg.connect.IcebergSinkConnector"
FORMAT = "io.confluent.connect.s3.format."
BUCKET = "lake"


class Job:
    def __init__(self, broker: PenstockBroker, config: Mapping[str, str], tasks: int, launcher: Any) -> None:
        settings = WorkerSettings.of({
            "bootstrap.servers": broker.bootstrap, "group.id": "workers", "offset.flush.interval.ms": "100",
            "offset.storage.topic": "none", "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false",
            "errors.restart.delay.initial.ms": "50", "errors.restart.delay.max.ms": "200",
        })  # fmt: skip
        program = TaskProgram(f"sink-{config['topics']}", dict(config), [{}] * tasks, settings)
        self.events: list[tuple[int, str, Any]] = []
        self.launcher = launcher
        self.long = LongJob(
            program, tasks=tasks, name=program.connector, launcher=launcher,
            on_event=lambda task, name, data: self.events.append((task, name, data)),
        )  # fmt: skip
        self.long.start()

    def runs(self, task: int) -> int:
        return [
            data["state"] for each, name, data in list(self.events) if each == task and name == "status"
        ].count("RUNNING")

    def kill(self, task: int) -> None:
        """Returns when it runs again."""
        before = self.runs(task)
        [processes] = self.launcher.process_ids().values()
        os.kill(processes[task], signal.SIGKILL)
        until(lambda: self.runs(task) > before, "the task")

    def assigned(self, tasks: int) -> int:
        return sum(
            len(self.long.ask(task, "status")["assignment"]) for task in range(tasks) if self.runs(task)
        )


@pytest.fixture
def start(broker: PenstockBroker) -> Iterator[Callable[..., Job]]:
    jobs: list[Job] = []

    def begin(config: Mapping[str, str], *, tasks: int = 1, launcher: Any = None) -> Job:
        jobs.append(Job(broker, config, tasks, launcher or ThreadLauncher()))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.long.stop(within_s=20)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of an S3 server with a bucket."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    files_of(url).create_dir(BUCKET)
    yield url
    server.stop()


def files_of(url: str) -> Any:
    return pyarrow.fs.S3FileSystem(
        access_key="key",
        secret_key="secret",
        endpoint_override=url,
        region="us-east-1",
        allow_bucket_creation=True,
    )


def s3_config(url: str, topic: str, **more: str) -> dict[str, str]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {
        "connector.class": S3, "topics": topic, "store.url": url, "s3.bucket.name": BUCKET, "s3.region": "us-east-1",
        "aws.access.key.id": "key", "aws.secret.access.key": "secret", **given,
    }  # fmt: skip


def objects(url: str, topic: str) -> dict[str, bytes]:
    files = files_of(url)
    chosen = pyarrow.fs.FileSelector(f"{BUCKET}/topics/{topic}", recursive=True, allow_not_found=True)
    return {
        each.base_name: files.open_input_file(each.path).read()
        for each in files.get_file_info(chosen)
        if each.is_file
    }


class Lake:
    def __init__(self, folder: Path) -> None:
        uri, warehouse = f"sqlite:///{folder}/catalog.db", (folder / "lake").as_uri()
        self.config = {
            "connector.class": LAKE, "iceberg.catalog.uri": uri, "iceberg.catalog.warehouse": warehouse,
            "iceberg.tables": "db.numbers", "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.evolve-schema-enabled": "true", "iceberg.control.commit.interval-ms": "100",
        }  # fmt: skip
        self._catalog = SqlCatalog("iceberg", uri=uri, warehouse=warehouse)

    def rows(self, column: str = "n") -> list[Any]:
        if not self._catalog.table_exists("db.numbers"):
            return []
        found: list[Any] = self._catalog.load_table("db.numbers").scan().to_arrow().column(column).to_pylist()
        return found

    def count(self) -> int:
        if not self._catalog.table_exists("db.numbers"):
            return 0
        snapshot = self._catalog.load_table("db.numbers").current_snapshot()
        return (
            0 if snapshot is None or snapshot.summary is None else int(snapshot.summary["total-records"] or 0)
        )

    def close(self) -> None:
        self._catalog.close()


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path)
    yield made
    made.close()


def write(broker: PenstockBroker, topic: str, values: Sequence[object]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number, value in enumerate(values):
        data = value if isinstance(value, bytes | None) else json.dumps(value)
        producer.produce(topic, data, key=f"key-{number}")
    assert producer.flush(30) == 0


def numbers(start: int, count: int) -> list[dict[str, int]]:
    return [{"n": number} for number in range(start, start + count)]


def committed(broker: PenstockBroker, topic: str) -> int:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": f"connect-sink-{topic}", "log_level": 0}
    )
    try:
        return int(consumer.committed([TopicPartition(topic, 0)], timeout=30)[0].offset)
    finally:
        consumer.close()


def test_they_go_by_the_names_that_their_users_know() -> None:
    known = {each.name for each in plugins_of().all("sink")}
    assert {S3, LAKE} <= known


def test_a_killed_lake_sink_has_every_record_once(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], lake: Lake
) -> None:
    topic = make_topic(partitions=4)
    config = {**lake.config, "topics": topic, "consumer.override.max.poll.records": "20"}
    job = start(config, tasks=2, launcher=ProcessLauncher())
    until(lambda: job.assigned(2) == 4, "the assignment")
    written = 0
    for kill in range(2):
        write(broker, topic, numbers(written, 500))
        written += 500
        until(lambda written=written: lake.count() >= written - 480, "the first rows")
        job.kill(kill)
    until(lambda: lake.count() >= written, "all rows")
    assert Counter(lake.rows()) == Counter(range(written))


@pytest.mark.parametrize("name", ["json.JsonFormat", "parquet.ParquetFormat"])
def test_a_killed_object_store_sink_has_the_files_that_it_would_have_had(
    name: str, broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], s3: str
) -> None:
    topic = make_topic()
    config = s3_config(s3, topic, flush_size="50", format_class=FORMAT + name)
    config["consumer.override.max.poll.records"] = "20"
    job = start(config, launcher=ProcessLauncher())
    written = 0
    for _ in range(2):
        write(broker, topic, numbers(written, 200))
        written += 200
        until(lambda written=written: len(objects(s3, topic)) * 50 >= written - 150, "the first files")
        job.kill(0)
    until(lambda: len(objects(s3, topic)) * 50 == written, "all files")
    found = objects(s3, topic)
    suffix = ".json" if name.startswith("json") else ".snappy.parquet"
    assert sorted(found) == [f"{topic}+0+{offset:010}{suffix}" for offset in range(0, written, 50)]
    for file, data in found.items():
        rows = (
            [json.loads(line) for line in data.splitlines()]
            if suffix == ".json"
            else pq.read_table(pyarrow.BufferReader(data)).to_pylist()
        )
        assert rows == numbers(int(file.rpartition("+")[2].split(".")[0]), 50)
    until(lambda: committed(broker, topic) == written, "the offsets")


def test_a_store_that_is_away_is_waited_for(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], tmp_path: Path
) -> None:
    topic = make_topic()
    blocked = tmp_path / "topics"
    blocked.write_text("")  # a file where a folder should be
    config = {"connector.class": S3, "topics": topic, "store.url": tmp_path.as_uri(), "flush.size": "2"}
    config["format.class"] = FORMAT + "json.JsonFormat"
    job = start(config)
    write(broker, topic, numbers(0, 4))
    until(lambda: job.long.ask(0, "status")["counters"]["total-retries"] if job.runs(0) else 0, "a retry")
    blocked.unlink()
    until(lambda: len(list(tmp_path.rglob("*.json"))) == 2, "the files")
    assert job.runs(0) == 1


def test_tasks_commit_at_once_to_a_table_in_s3_with_its_catalog_in_postgresql(
    postgresql: PostgreSql, s3: str
) -> None:
    given = {
        "iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": postgresql.jdbc_url,
        "iceberg.catalog.jdbc.user": "penstock", "iceberg.catalog.jdbc.password": postgresql.password,
        "iceberg.catalog.warehouse": f"s3://{BUCKET}/lake", "iceberg.catalog.s3.endpoint": s3,
        "iceberg.catalog.s3.region": "us-east-1", "iceberg.catalog.s3.access-key-id": "key",
        "iceberg.catalog.s3.secret-access-key": "secret", "iceberg.tables": "shop.orders",
        "iceberg.tables.auto-create-enabled": "true", "iceberg.control.commit.interval-ms": "0",
    }  # fmt: skip
    catalog_of("iceberg", given).close()  # its own tables are there

    def work(partition: int) -> None:
        with sink_task(LakeTask, given) as task:
            task.open([("t", partition)])
            for offset in range(8):
                record = SinkRecord("t", partition, offset, {"n": partition * 100 + offset})
                until(lambda record=record: is_put(task, record), "a commit")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    catalog = catalog_of("iceberg", given)
    table = catalog.load_table("shop.orders")
    found = sorted(table.scan().to_arrow().column("n").to_pylist())
    assert found == [partition * 100 + offset for partition in range(3) for offset in range(8)]
    assert offsets_of(table, "tested") == {("t", partition): 8 for partition in range(3)}
    catalog.close()


def is_put(task: LakeTask, record: SinkRecord) -> bool:
    """The worker puts the same records again, too."""
    try:
        task.put([record])
    except RetriableError:
        return False
    return True


AVRO = {
    "type": "record", "name": "Row", "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "more", "type": {"type": "map", "values": "int"}},
        {"name": "in", "type": ["null", {"type": "record", "name": "In", "fields": [{"name": "x", "type": "float"}]}]},
    ],
}  # fmt: skip


def avro_row(number: int) -> dict[str, Any]:
    return {
        "id": number, "note": f"n{number}" if number % 2 else None, "at": dt.datetime(2024, 1, 2, 3, 4, number, tzinfo=dt.UTC),
        "day": dt.date(2024, 1, 1 + number) if number else None, "price": Decimal(f"{number}.25"), "kind": "AB"[number % 2],
        "tags": [str(each) for each in range(number)], "more": {"a": number}, "in": {"x": 1.5} if number else None,
    }  # fmt: skip


def test_avro_comes_by_columns_as_it_would_come_by_records(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], lake: Lake, tmp_path: Path
) -> None:
    registry = RegistryProcess(broker.bootstrap, tmp_path)
    try:
        topic = make_topic()
        wider = {
            **AVRO,
            "fields": [*AVRO["fields"], {"name": "new", "type": ["null", "int"], "default": None}],
        }
        ids = [registry.register(f"{topic}-value", json.dumps(schema)) for schema in (AVRO, wider)]
        values = [
            framed(ids[0], AVRO, avro_row(number)) for number in range(3)
        ] + [framed(ids[1], wider, {**avro_row(3), "new": 7})]  # fmt: skip
        converter = AvroConverter()
        given = {"schema.registry.url": registry.url, "converter.type": "value"}
        converter.configure(given)
        decode = decoder_of(converter)
        assert decode is not None
        tables = decode(values)
        assert [table.num_rows for _, table in tables] == [3, 1]
        records = [converter.to_value(topic, value) for value in values]
        for (schema, table), rows in zip(tables, (records[:3], records[3:]), strict=True):
            assert schema == rows[0][0]
            expected = table_of(schema, [value for _, value in rows])
            assert table.schema == expected.schema
            assert table.to_pylist() == expected.to_pylist()
        config = {
            **lake.config, "topics": topic, "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": registry.url,
        }  # fmt: skip
        start(config)
        write(broker, topic, values)
        until(lambda: sorted(lake.rows("id")) == [0, 1, 2, 3], "the rows")
        assert sorted(lake.rows("price")) == [Decimal(f"{number}.25") for number in range(4)]
        assert lake.rows("new").count(7) == 1
    finally:
        registry.close()


def framed(schema_id: int, schema: dict[str, Any], row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return b"\0" + schema_id.to_bytes(4, "big") + out.getvalue()


def test_values_that_fit_no_column_are_dead_letters_and_the_others_are_there(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], lake: Lake
) -> None:
    topic, letters = make_topic(), make_topic()
    config = {
        **lake.config, "topics": topic, "errors.tolerance": "all", "errors.deadletterqueue.topic.name": letters,
    }  # fmt: skip
    start(config)
    write(broker, topic, numbers(0, 10))
    until(lambda: sorted(lake.rows()) == list(range(10)), "the first rows")
    write(broker, topic, [b"{no json", {"n": "no number"}, *numbers(10, 5), None])
    until(lambda: sorted(lake.rows()) == list(range(15)), "the others")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "letters", "log_level": 0})
    try:
        consumer.assign([TopicPartition(letters, 0, 0)])
        found: list[bytes] = []

        def read() -> bool:
            found.extend(message.value() for message in consumer.consume(10, 0.2) if message.error() is None)
            return len(found) == 2

        until(read, "the letters")
        assert sorted(found) == [b'{"n": "no number"}', b"{no json"]
    finally:
        consumer.close()
