"""Records to files of an object store: folders, names, rotation, formats."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import logging
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from penstock.connect import Header, InvalidConfig, RetriableError, SinkRecord
from penstock.connect.connectors.object_store.joda import PathFormat
from penstock.connect.connectors.object_store.task import ObjectStoreSink, ObjectStoreTask
from penstock.connect.data import INT32, INT64, STRING, TIMESTAMP, decimal, struct
from penstock.connect.data.schema import Schema

FORMAT = "io.confluent.connect.s3.format."
STORAGE = "io.confluent.connect.storage.partitioner."
ORDER = struct("order", id=INT64, note=STRING.optional())
PLACE = ("t", 0)


class Context:
    connector, task = "s", 0

    def __init__(self) -> None:
        self.reported: list[tuple[SinkRecord, BaseException]] = []

    def report(self, record: SinkRecord, error: BaseException) -> None:
        self.reported.append((record, error))


def sink(folder: Path, **more: str) -> ObjectStoreTask:
    task = ObjectStoreTask()
    given = {name.replace("_", "."): value for name, value in more.items()}
    task.configure(
        {"store.url": folder.as_uri(), "flush.size": "3", "format.class": FORMAT + "json.JsonFormat", **given}
    )
    task.log = logging.getLogger("tests")
    task.context = Context()  # type: ignore[assignment]
    task.start()
    task.open([PLACE])
    return task


def record(offset: int, value: Any, schema: Schema | None = None, **more: Any) -> SinkRecord:
    return SinkRecord("t", 0, offset, value, value_schema=schema, **more)


def maps(count: int, start: int = 0) -> list[SinkRecord]:
    return [record(start + number, {"id": start + number}) for number in range(count)]


def files(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def committed(task: ObjectStoreTask) -> dict[Any, int]:
    return dict(task.pre_commit({}))


def test_a_file_is_finished_after_so_many_records_and_offsets_follow_it(tmp_path: Path) -> None:
    task = sink(tmp_path)
    task.put(maps(2))
    assert files(tmp_path) == []
    assert committed(task) == {}
    task.put(maps(5, start=2))
    first, second = "topics/t/partition=0/t+0+0000000000.json", "topics/t/partition=0/t+0+0000000003.json"
    assert files(tmp_path) == [first, second]
    assert lines(tmp_path / first) == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert committed(task) == {PLACE: 6}


def test_records_that_come_again_are_in_files_once(tmp_path: Path) -> None:
    task = sink(tmp_path)
    task.put(maps(2))
    task.put(maps(3))
    assert lines(tmp_path / files(tmp_path)[0]) == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_a_store_that_fails_gets_the_same_file_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = sink(tmp_path)
    real = task._store.write
    failures = iter([True, False, False])

    def write(path: str, data: Any) -> None:
        if next(failures):
            raise RetriableError("away")
        real(path, data)

    monkeypatch.setattr(task._store, "write", write)
    with pytest.raises(RetriableError):
        task.put(maps(4))
    assert committed(task) == {}
    task.put(maps(4))
    assert [lines(tmp_path / each) for each in files(tmp_path)] == [[{"id": 0}, {"id": 1}, {"id": 2}]]
    assert committed(task) == {PLACE: 3}


def test_folders_are_made_of_fields(tmp_path: Path) -> None:
    task = sink(
        tmp_path,
        partitioner_class=STORAGE + "FieldPartitioner",
        partition_field_name="kind,at.city",
        flush_size="4",
    )
    kinds = [("a", "X"), ("b", "X"), ("a", "X"), ("a/b", "Y")]
    task.put(
        [record(number, {"kind": kind, "at": {"city": city}}) for number, (kind, city) in enumerate(kinds)]
    )
    assert files(tmp_path) == [
        "topics/t/kind=a%2Fb/at.city=Y/t+0+0000000003.json",
        "topics/t/kind=a/at.city=X/t+0+0000000000.json",
        "topics/t/kind=b/at.city=X/t+0+0000000001.json",
    ]


def test_folders_are_made_of_the_time_of_records(tmp_path: Path) -> None:
    task = sink(
        tmp_path, partitioner_class=STORAGE + "HourlyPartitioner", timezone="Europe/Berlin",
        timestamp_extractor=STORAGE + "TimeBasedPartitioner$RecordTimestampExtractor", flush_size="2",
    )  # fmt: skip
    times = [dt.datetime(2024, 7, 1, 22, 59, tzinfo=dt.UTC), dt.datetime(2024, 7, 1, 23, 1, tzinfo=dt.UTC)]
    task.put([record(n, {"n": n}, timestamp_ms=int(each.timestamp() * 1000)) for n, each in enumerate(times)])
    assert files(tmp_path) == [
        "topics/t/year=2024/month=07/day=02/hour=00/t+0+0000000000.json",
        "topics/t/year=2024/month=07/day=02/hour=01/t+0+0000000001.json",
    ]


def test_a_file_ends_when_so_much_time_has_passed_between_its_records(tmp_path: Path) -> None:
    task = sink(
        tmp_path,
        timestamp_extractor="RecordField",
        timestamp_field="at",
        rotate_interval_ms="1000",
        flush_size="100",
    )
    task.put([record(n, {"at": at}) for n, at in enumerate([5000, 5999, 6000, 6500])])
    assert [lines(tmp_path / each) for each in files(tmp_path)] == [[{"at": 5000}, {"at": 5999}]]
    assert committed(task) == {PLACE: 2}


def test_the_clock_finishes_files_on_schedule(tmp_path: Path) -> None:
    task = sink(tmp_path, flush_size="100", rotate_schedule_interval_ms="1")
    task.put(maps(1))
    while not files(tmp_path):
        task.put([])
    assert committed(task) == {PLACE: 1}


def test_another_schema_begins_another_file(tmp_path: Path) -> None:
    wider = struct("order", id=INT64, note=STRING.optional(), extra=INT32.optional())
    task = sink(tmp_path, flush_size="3", format_class=FORMAT + "avro.AvroFormat")
    task.put(
        [
            record(0, ORDER.new(id=0), ORDER),
            record(1, wider.new(id=1, extra=5), wider),
            record(2, wider.new(id=2), wider),
        ]
    )
    assert files(tmp_path) == ["topics/t/partition=0/t+0+0000000000.avro"]
    with (tmp_path / files(tmp_path)[0]).open("rb") as file:
        assert list(fastavro.reader(file)) == [{"id": 0, "note": None}]


def test_an_older_schema_becomes_the_files(tmp_path: Path) -> None:
    old, new = ORDER.with_(version=1), struct("order", id=INT64, extra=INT32.optional()).with_(version=2)
    task = sink(tmp_path, schema_compatibility="BACKWARD", format_class=FORMAT + "parquet.ParquetFormat")
    task.put(
        [
            record(0, new.new(id=0, extra=7), new),
            record(1, old.new(id=1, note="n"), old),
            record(2, new.new(id=2), new),
        ]
    )
    (name,) = files(tmp_path)
    assert name.endswith("t+0+0000000000.snappy.parquet")
    rows = pq.read_table(tmp_path / name, partitioning=None).to_pylist()
    assert rows == [{"id": 0, "extra": 7}, {"id": 1, "extra": None}, {"id": 2, "extra": None}]


def test_logical_types_are_those_of_parquet_and_avro(tmp_path: Path) -> None:
    kind = struct("row", price=decimal(2), at=TIMESTAMP)
    row = {"price": Decimal("1.25"), "at": dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC)}
    for name in ("parquet.ParquetFormat", "avro.AvroFormat"):
        task = sink(tmp_path / name, flush_size="1", format_class=FORMAT + name)
        task.put([record(0, kind.of(row), kind)])
    (parquet,) = (tmp_path / "parquet.ParquetFormat").rglob("*.parquet")
    assert pq.read_table(parquet, partitioning=None).to_pylist() == [row]
    (avro,) = (tmp_path / "avro.AvroFormat").rglob("*.avro")
    with avro.open("rb") as file:
        assert list(fastavro.reader(file)) == [row]


@pytest.mark.parametrize("codec", ["deflate", "snappy", "bzip2"])
def test_avro_files_are_packed_and_others_read_them(tmp_path: Path, codec: str) -> None:
    task = sink(tmp_path, flush_size="20000", avro_codec=codec, format_class=FORMAT + "avro.AvroFormat")
    task.put([record(n, ORDER.new(id=n, note="x" * 20), ORDER) for n in range(20_000)])
    data = (tmp_path / files(tmp_path)[0]).read_bytes()
    assert [each["id"] for each in fastavro.reader(io.BytesIO(data))] == list(range(20_000))  # type: ignore[index, call-overload]
    assert len(data) < 300_000


def test_bytes_are_written_as_they_are_and_packed(tmp_path: Path) -> None:
    task = sink(
        tmp_path, flush_size="2", s3_compression_type="gzip", format_class=FORMAT + "bytearray.ByteArrayFormat",
        **{"format.bytearray.separator": "\\0", "format.bytearray.extension": ".raw"},
    )  # fmt: skip
    task.put([record(0, "text"), record(1, b"a\nb"), record(2, b"c")])
    (name,) = files(tmp_path)
    assert name.endswith("t+0+0000000001.raw.gz")
    assert gzip.decompress((tmp_path / name).read_bytes()) == b"a\nb\0c\0"
    assert [str(error)[:15] for _, error in task.context.reported] == ["ByteArrayFormat"]  # type: ignore[attr-defined]


def test_keys_headers_and_tombstones_have_files_of_their_own(tmp_path: Path) -> None:
    task = sink(
        tmp_path, flush_size="2", behavior_on_null_values="write", store_kafka_keys="true", store_kafka_headers="true",
        keys_format_class=FORMAT + "json.JsonFormat", headers_format_class=FORMAT + "json.JsonFormat",
    )  # fmt: skip
    task.put([record(0, {"a": 1}, key="k", headers=[Header("h", "v")]), record(1, None, key="gone")])
    base = "topics/t/partition=0/t+0+0000000000"
    gone = "topics/t/tombstone/t+0+0000000001"
    assert files(tmp_path) == sorted(
        [
            f"{base}.headers.json",
            f"{base}.json",
            f"{base}.keys.json",
            f"{gone}.headers.json",
            f"{gone}.keys.json",
        ]
    )
    assert lines(tmp_path / f"{base}.keys.json") == ["k"]
    assert lines(tmp_path / f"{base}.headers.json") == [{"headers": [{"key": "h", "value": "v"}]}]
    assert lines(tmp_path / f"{gone}.keys.json") == ["gone"]


@pytest.mark.parametrize(("behavior", "reported"), [("fail", 1), ("ignore", 0)])
def test_null_values_fail_or_are_left_out(tmp_path: Path, behavior: str, reported: int) -> None:
    task = sink(tmp_path, behavior_on_null_values=behavior, flush_size="2")
    task.put([record(0, {"a": 1}), record(1, None), record(2, {"a": 2})])
    assert lines(tmp_path / files(tmp_path)[0]) == [{"a": 1}, {"a": 2}]
    assert len(task.context.reported) == reported  # type: ignore[attr-defined]
    assert committed(task) == {PLACE: 3}


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("'year'=YYYY/'month'=MM/'day'=dd", "year=2024/month=03/day=05"),
        ("yy-M-d'T'HH:mm:ss.SSS", "24-3-5T07:08:09.120"),
        ("EEE EEEE MMM MMMM a h", "Tue Tuesday Mar March AM 7"),
        ("'it''s' DDD ww", "it's 065 10"),
    ],
)
def test_paths_are_written_as_joda_time_does(pattern: str, text: str) -> None:
    assert PathFormat(pattern).format(dt.datetime(2024, 3, 5, 7, 8, 9, 120_000)) == text


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"format.class": "x.OrcFormat"}, "format.class"),
        ({"partitioner.class": STORAGE + "TimeBasedPartitioner"}, "partitioner.class"),
        ({"partitioner.class": STORAGE + "DailyPartitioner"}, "partitioner.class"),
        ({"timestamp.extractor": "Moon"}, "timestamp.extractor"),
        ({"store.url": ""}, "store.url"),
    ],
)
def test_mistakes_are_told_by_their_setting(given: dict[str, str], name: str) -> None:
    found = ObjectStoreSink.check({"flush.size": "1", "store.url": "file:///x", **given})
    assert list(found) == [name]


def test_tombstones_are_written_only_where_keys_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"store\.kafka\.keys"):
        sink(tmp_path, behavior_on_null_values="write")
