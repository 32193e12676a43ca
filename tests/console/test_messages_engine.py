"""Messages without a page: searched, followed, exported, written and copied on a real broker."""

from __future__ import annotations

import csv
import json
import random
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from penstock.client.clients import Connection
from penstock.client.errors import ReadFailed, Refused, UserError
from penstock.client.fetching import Range
from penstock.client.schema_registry import SchemaRegistry
from penstock.client.schema_values import SchemaChoice, ValueWriter
from penstock.console.access.masking import HIDDEN, Masking, MaskingRule
from penstock.console.messages import detail as details
from penstock.console.messages.copying import Copying
from penstock.console.messages.decode import Format, PartDecoder, Registry
from penstock.console.messages.export import export
from penstock.console.messages.jobs import Jobs
from penstock.console.messages.loading import load
from penstock.console.messages.model import Copy, Row, Search, Source
from penstock.console.messages.produce import Encoder, NewRecord, parse_lines, produce
from penstock.console.messages.reading import Reader
from penstock.console.messages.rows import Rows
from penstock.console.messages.scan import Scan
from penstock.console.messages.tail import Tail
from penstock.console.messages.wanted import Wanted
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import delete_records
from tests.clients.driver import wait_until
from tests.conftest import MakeTopic, StartBroker
from tests.small_registry import small_registry

WAIT_S = 30.0
BASE_MS = 1_700_000_000_000


def write(bootstrap: str, topic: str, *records: dict[str, Any], **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 20, **settings})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(WAIT_S) == 0


def plain_rows(topic: str, **more: Any) -> Rows:
    shared: Any = {name: more.get(name) for name in ("registry", "mask")}
    return Rows(
        PartDecoder(topic, is_key=True, **shared),
        PartDecoder(topic, is_key=False, form=more.get("form", Format.AUTO), **shared),
        more.get("mask"),
    )


def scanned(bootstrap: str, topic: str, *, rows: Rows | None = None, **search: Any) -> tuple[Scan, list[Row]]:
    scan = Scan(
        Source(bootstrap=bootstrap),
        Search(topic=topic, **search),
        rows or plain_rows(topic),
        threading.Event(),
    )
    scan.run()
    return scan, scan.top.rows()


def values(rows: list[Row]) -> list[str]:
    return [row.value.text for row in rows]


@contextmanager
def in_thread(run: Any, stopped: threading.Event) -> Iterator[threading.Thread]:
    failures: list[BaseException] = []

    def running() -> None:
        try:
            run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=running)
    thread.start()
    try:
        yield thread
    finally:
        stopped.set()
        thread.join(WAIT_S)
        assert not thread.is_alive()
    assert not failures, failures


@pytest.fixture
def numbers(broker: PenstockBroker, make_topic: MakeTopic) -> str:
    """300 records in three partitions, in turn, one each millisecond."""
    topic = make_topic(partitions=3)
    write(
        broker.bootstrap, topic,
        *({"key": f"k{n}", "value": f'{{"n": {n}, "text": "number {n:03}"}}', "partition": n % 3, "timestamp": BASE_MS + n}
          for n in range(300)),
    )  # fmt: skip
    return topic


def test_the_newest_of_all_partitions_come_first(broker: PenstockBroker, numbers: str) -> None:
    _, rows = scanned(broker.bootstrap, numbers, limit=7)
    assert [row.timestamp_ms - BASE_MS for row in rows] == [299, 298, 297, 296, 295, 294, 293]
    assert rows[0].key.text == "k299"
    assert rows[0].value.kind == "json"


def test_the_oldest_from_an_offset_or_a_time_come_first(broker: PenstockBroker, numbers: str) -> None:
    _, rows = scanned(broker.bootstrap, numbers, newest_first=False, start=50, limit=3)
    assert [(row.partition, row.offset) for row in rows] == [(0, 50), (1, 50), (2, 50)]
    when = datetime.fromtimestamp((BASE_MS + 100) / 1000, UTC)
    _, rows = scanned(broker.bootstrap, numbers, newest_first=False, start=when, limit=2)
    assert [row.timestamp_ms - BASE_MS for row in rows] == [100, 101]


def test_only_the_chosen_partitions_are_read(broker: PenstockBroker, numbers: str) -> None:
    scan, rows = scanned(broker.bootstrap, numbers, partitions=(1,), limit=500)
    assert {row.partition for row in rows} == {1}
    assert len(rows) == scan.progress.total == 100
    with pytest.raises(UserError, match="no partition 7"):
        scanned(broker.bootstrap, numbers, partitions=(7,))


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_search_finds_what_a_walk_over_all_records_finds(
    broker: PenstockBroker, make_topic: MakeTopic, codec: str, newest_first: bool
) -> None:
    topic = make_topic(partitions=4)
    chance = random.Random(f"{codec}{newest_first}")
    records: list[dict[str, Any]] = [
        {"value": json.dumps({"a": {"b": chance.randrange(1000)}}), "partition": chance.randrange(4), "timestamp": BASE_MS + n}
        for n in range(20_000)
    ]  # fmt: skip
    write(broker.bootstrap, topic, *records, **{"compression.type": codec})
    wanted = [
        (each["timestamp"], each["value"]) for each in records if json.loads(each["value"])["a"]["b"] < 5
    ]
    scan, rows = scanned(
        broker.bootstrap, topic, newest_first=newest_first, limit=5000, wanted=Wanted(path="$.a.b < 5")
    )
    assert [(row.timestamp_ms, row.value.text) for row in rows] == sorted(wanted, reverse=newest_first)
    assert scan.progress.matched == len(wanted)
    assert scan.progress.counts.offsets == scan.progress.total == 20_000
    _, few = scanned(
        broker.bootstrap, topic, newest_first=newest_first, limit=3, wanted=Wanted(path="$.a.b < 5")
    )
    assert few == rows[:3]


def test_a_search_with_its_rows_ends_before_the_end_of_the_topic(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    write(broker.bootstrap, topic, *({"value": b"x" * 100, "timestamp": BASE_MS + n} for n in range(30_000)))
    scan, rows = scanned(broker.bootstrap, topic, limit=10, wanted=Wanted(text="x"))
    assert len(rows) == 10
    assert scan.progress.counts.offsets < 5_000


def test_what_was_aborted_is_seen_only_by_who_asks_for_it(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(WAIT_S)
    for value, commits in (("good", True), ("bad", False)):
        producer.begin_transaction()
        producer.produce(topic, value=value)
        producer.flush(WAIT_S)
        (producer.commit_transaction if commits else producer.abort_transaction)(WAIT_S)
    assert values(scanned(broker.bootstrap, topic)[1]) == ["good"]
    assert sorted(values(scanned(broker.bootstrap, topic, committed=False)[1])) == ["bad", "good"]
    _, rows = scanned(broker.bootstrap, topic, with_control=True)
    assert sorted(row.control for row in rows) == ["", "abort", "commit"]
    marker = next(row for row in rows if row.control == "abort")
    found = load(Source(bootstrap=broker.bootstrap), topic, 0, marker.offset)
    assert found.batch.control == "abort"
    assert found.batch.is_transactional


def test_a_tombstone_is_a_null_and_no_empty_value(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    write(broker.bootstrap, topic, {"key": "a", "value": None}, {"key": "b", "value": b""})
    _, rows = scanned(broker.bootstrap, topic)
    assert {row.key.text: (row.value.kind, row.value.size_bytes) for row in rows} == {
        "a": ("null", -1),
        "b": ("empty", 0),
    }
    assert [row.key.text for row in scanned(broker.bootstrap, topic, wanted=Wanted(only_nulls=True))[1]] == [
        "a"
    ]


def test_deleted_records_are_left_out_and_those_deleted_meanwhile_are_stepped_over(
    broker: PenstockBroker, numbers: str
) -> None:
    delete_records(broker.bootstrap, numbers, 0, 40)
    scan, _ = scanned(broker.bootstrap, numbers, limit=500)
    assert scan.progress.total == 260
    with Reader(broker.bootstrap, {}, committed=True, stopped=threading.Event()) as reader:
        topic = reader.topic(numbers)
        stale = {0: Range(0, 100), 1: Range(0, 100)}
        rows = sum(batch.num_rows for batch in reader.batches(topic, stale) if not isinstance(batch, list))
        assert rows == 160
        assert reader.counts.deleted == 40
        assert reader.counts.offsets == 200


def test_a_topic_that_is_not_there_is_refused(broker: PenstockBroker) -> None:
    with pytest.raises(ReadFailed, match="there is no topic 'nowhere'"):
        scanned(broker.bootstrap, "nowhere")


def test_a_search_ends_soon_when_it_is_cancelled_even_if_the_broker_hangs(start_broker: StartBroker) -> None:
    own = start_broker()
    write(own.bootstrap, "silent", *({"value": b"x" * 1000} for _ in range(20_000)))
    stopped = threading.Event()
    scan = Scan(
        Source(bootstrap=own.bootstrap),
        Search(topic="silent", wanted=Wanted(text="nothing")),
        plain_rows("silent"),
        stopped,
    )
    with Reader(own.bootstrap, {}, committed=True, stopped=stopped) as reader:
        topic = reader.topic("silent")
        batches = reader.batches(topic, {0: Range(0, 20_000)})
        next(batches)
        own.process.pause()
        try:
            threading.Timer(0.2, stopped.set).start()
            assert list(batches) is not None  # it would wait for an answer
        finally:
            own.process.resume()
    jobs = Jobs()
    again = threading.Event()
    scan = Scan(
        Source(bootstrap=own.bootstrap),
        Search(topic="silent", wanted=Wanted(text="n")),
        plain_rows("silent"),
        again,
    )
    job = jobs.start("search", scan.progress, again, scan.run)
    job.cancel()
    assert not job.is_running
    wait_until(lambda: jobs.running() == 0, "its thread has ended")


def test_a_job_tells_why_it_failed(broker: PenstockBroker) -> None:
    jobs, stopped = Jobs(at_most=1), threading.Event()
    scan = Scan(Source(bootstrap=broker.bootstrap), Search(topic="nowhere"), plain_rows("nowhere"), stopped)
    job = jobs.start("search", scan.progress, stopped, scan.run)
    with pytest.raises(UserError, match="long pieces of work already"):
        jobs.start("another", scan.progress, stopped, scan.run)
    wait_until(lambda: not job.is_running, "it has failed")
    assert job.progress.state == "failed"
    assert "there is no topic 'nowhere'" in job.progress.error


def test_a_tail_follows_what_is_written_and_pauses(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    write(broker.bootstrap, topic, {"value": b"before"})
    stopped = threading.Event()
    tail = Tail(
        Source(bootstrap=broker.bootstrap), Search(topic=topic, limit=3, wanted=Wanted(text="a")), plain_rows(topic), stopped
    )  # fmt: skip
    with in_thread(tail.run, stopped):
        assert tail.is_ready.wait(WAIT_S)
        write(
            broker.bootstrap,
            topic,
            *({"value": f"a{n}", "timestamp": BASE_MS + n, "partition": n % 2} for n in range(5)),
            {"value": "b"},
        )
        wait_until(lambda: values(tail.top.rows()) == ["a4", "a3", "a2"], "the newest three are there")
        tail.pause()
        write(broker.bootstrap, topic, {"value": "a5", "timestamp": BASE_MS + 5})
        tail.resume()
        wait_until(lambda: values(tail.top.rows())[0] == "a5", "it goes on where it paused")
        assert tail.progress.matched == 6
        write(broker.bootstrap, topic, {"value": "an old time", "timestamp": BASE_MS - 1_000_000})
        wait_until(lambda: values(tail.top.rows())[0] == "an old time", "what came last is first")


def test_a_value_of_ten_megabytes_is_cut_in_rows_and_whole_in_its_detail(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"max.message.bytes": "20000000"})
    large = json.dumps({"pad": "x" * 10_000_000, "last": 1}).encode()
    write(
        broker.bootstrap, topic, {"value": large}, {"value": b'{"last": 2}'}, **{"message.max.bytes": 20_000_000}
    )  # fmt: skip
    _, rows = scanned(broker.bootstrap, topic, newest_first=False)
    assert len(rows[0].value.text) < 300
    assert rows[0].value.kind == "json"
    assert rows[0].value.size_bytes == len(large)
    _, rows = scanned(broker.bootstrap, topic, wanted=Wanted(path="$.last == 1"))
    assert [row.offset for row in rows] == [0]
    found = load(Source(bootstrap=broker.bootstrap), topic, 0, 0)
    assert found.record.value == large
    part = details.value_part(found, plain_rows(topic))
    assert part.is_cut
    assert len(part.text) < 100_000
    with pytest.raises(UserError, match="it ends at 2"):
        load(Source(bootstrap=broker.bootstrap), topic, 0, 2)


def test_a_detail_has_headers_and_what_the_batch_says(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    headers = [("source", b"shop"), ("source", b"again"), ("none", None), ("bytes", b"\xff\xfe")]
    write(
        broker.bootstrap, topic,
        {"key": struct.pack(">q", 42), "value": b"<script>alert(1)</script>", "headers": headers, "timestamp": BASE_MS},
        **{"compression.type": "zstd"},
    )  # fmt: skip
    rows = plain_rows(topic)
    found = load(Source(bootstrap=broker.bootstrap), topic, 0, 0)
    assert details.header_parts(found, rows) == [
        ("source", "shop"), ("source", "again"), ("none", "null"), ("bytes", "ff fe"),
    ]  # fmt: skip
    assert details.key_part(found, rows)[:2] == ("long", "42")
    assert details.value_part(found, rows).text == "<script>alert(1)</script>"
    assert (found.batch.codec, found.batch.base_offset, found.batch.records_count) == ("zstd", 0, 1)
    assert found.record.timestamp_ms == BASE_MS


SECRET = {"card": "4929-ZQXJ-7777", "name": "Ana", "n": 7}


@pytest.fixture
def secrets(broker: PenstockBroker, make_topic: MakeTopic) -> str:
    topic = make_topic()
    write(
        broker.bootstrap, topic, {"key": "k1", "value": json.dumps(SECRET), "headers": {"token": "tok-QQ", "x": "y"}},
        {"key": "k2", "value": b"card 4929-ZQXJ-7777 in a text"}, {"key": "k3", "value": b'{"name": "Rui", "n": 8}'},
    )  # fmt: skip
    return topic


def masked(topic: str) -> Rows:
    rules = [MaskingRule(topics=("*",), fields=("card",)), MaskingRule(topics=("*",), headers=("token",))]
    return plain_rows(topic, mask=Masking(rules).for_topic(topic, ()))


def test_what_is_hidden_is_neither_shown_nor_found(broker: PenstockBroker, secrets: str) -> None:
    rows = masked(secrets)

    def keys(**wanted: Any) -> list[str]:
        return sorted(
            row.key.text for row in scanned(broker.bootstrap, secrets, rows=rows, wanted=Wanted(**wanted))[1]
        )

    _, shown = scanned(broker.bootstrap, secrets, rows=rows)
    said = str(shown)
    assert "ZQXJ" not in said
    assert "tok-QQ" not in said
    assert "Ana" in said
    assert keys(text="ZQXJ") == []
    assert keys(path='$.card == "4929-ZQXJ-7777"') == []
    assert keys(path="not $.card contains '8'") == ["k1", "k3"]
    assert keys(text="card 4") == []
    assert keys(header="token=tok-QQ") == []
    assert keys(header="token") == ["k1"]
    assert keys(text='"name": "Ana"') == ["k1"]
    assert keys(path="$.n > 6") == ["k1", "k3"]


def test_what_is_hidden_cannot_be_guessed_by_what_a_search_leaves_out(
    broker: PenstockBroker, secrets: str
) -> None:
    rows = masked(secrets)

    def found(**wanted: Any) -> tuple[list[str], bytes]:
        search = {"wanted": Wanted(**wanted)}
        seen = sorted(row.key.text for row in scanned(broker.bootstrap, secrets, rows=rows, **search)[1])
        source = Source(bootstrap=broker.bootstrap)
        return seen, b"".join(export(source, Search(topic=secrets, **search), rows, "jsonl", limit=10))

    for right, wrong in (
        ("$.card != '4929-ZQXJ-7777'", "$.card != '4929-ZQXJ-7778'"), ("$.card > '5'", "$.card > '4'"),
        ("not $.card contains 'Z'", "not $.card contains 'Y'"),
    ):  # fmt: skip
        assert found(path=right) == found(path=wrong), right
    assert found(text='^[^Z]*"name"', is_pattern=True) == found(text='^[^Y]*"name"', is_pattern=True)


def test_an_export_shows_no_more_than_a_page_does(broker: PenstockBroker, secrets: str) -> None:
    for form in ("jsonl", "csv"):
        data = b"".join(
            export(Source(bootstrap=broker.bootstrap), Search(topic=secrets), masked(secrets), form, limit=10)
        )
        assert b"ZQXJ" not in data
        assert b"tok-QQ" not in data
        assert HIDDEN.encode() in data
        assert b"Rui" in data


def test_an_export_can_be_read_back_byte_by_byte(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    source, target = make_topic(), make_topic()
    records: list[dict[str, Any]] = [
        {"key": "a", "value": '{"x":  1.10, "y": 12345678901234567890}', "headers": [("h", b"1"), ("h", None)]},
        {"key": b"\xff\x00", "value": b"\x80\x81"}, {"key": None, "value": None}, {"value": "é\n\t\"x\""}, {"value": b""},
        {"key": struct.pack(">q", 7), "value": b"42"},
    ]  # fmt: skip
    write(broker.bootstrap, source, *({**each, "timestamp": BASE_MS + n} for n, each in enumerate(records)))
    lines = b"".join(
        export(
            Source(bootstrap=broker.bootstrap), Search(topic=source), plain_rows(source), "jsonl", limit=100
        )
    )
    new = parse_lines(
        lines.decode(),
        Encoder("text", target, is_key=True),
        Encoder("json", target, is_key=False),
        keeps_timestamps=True,
    )
    produce(Connection(broker.bootstrap), target, new)
    for offset in range(len(records)):
        left = load(Source(bootstrap=broker.bootstrap), source, 0, offset).record
        right = load(Source(bootstrap=broker.bootstrap), target, 0, offset).record
        assert left == right


def test_an_export_is_limited_filtered_and_harmless_in_a_spreadsheet(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    write(
        broker.bootstrap,
        topic,
        {"key": "=1+1", "value": "-5"},
        {"key": "@x", "value": 'a,b\n"c"'},
        {"value": "-x"},
        {"value": "no"},
    )
    search = Search(topic=topic, wanted=Wanted(text="^-|a|no", is_pattern=True, part=Wanted().part))
    data = b"".join(export(Source(bootstrap=broker.bootstrap), search, plain_rows(topic), "csv", limit=3))
    lines = list(csv.reader(data.decode().splitlines(keepends=True)))
    assert lines[0] == ["partition", "offset", "timestamp", "key", "value", "headers"]
    assert [line[3:5] for line in lines[1:]] == [["'=1+1", "-5"], ["'@x", 'a,b\n"c"'], ["", "'-x"]]


def test_an_export_that_nobody_reads_any_more_ends_its_read(broker: PenstockBroker, numbers: str) -> None:
    stopped = threading.Event()
    lines = export(
        Source(bootstrap=broker.bootstrap),
        Search(topic=numbers),
        plain_rows(numbers),
        "jsonl",
        limit=1000,
        stopped=stopped,
    )
    next(lines)
    lines.close()  # type: ignore[attr-defined]
    assert stopped.is_set()


def test_records_are_written_where_when_and_with_what_is_said(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    written = produce(
        Connection(broker.bootstrap),
        topic,
        [NewRecord(b"k", b"v", (("a", b"1"), ("b", None)), 2, BASE_MS), NewRecord(b"k", None, (), 1)],
    )
    assert written == [(2, 0), (1, 0)]
    record = load(Source(bootstrap=broker.bootstrap), topic, 2, 0).record
    assert (record.key, record.value, record.headers, record.timestamp_ms) == (
        b"k",
        b"v",
        (("a", b"1"), ("b", None)),
        BASE_MS,
    )
    with pytest.raises(Refused, match="0 of 1 records were written"):
        produce(Connection(broker.bootstrap), topic, [NewRecord(b"k", b"v", (), 9)])


def test_a_line_that_cannot_be_written_is_named_and_nothing_is_written(broker: PenstockBroker) -> None:
    key, value = Encoder("text", "t", is_key=True), Encoder("json", "t", is_key=False)
    for text, said in (
        ('{"value": 1}\n{"value": ', "line 2: Expecting value"),
        ('{"valu": 1}', "line 1: there is no field 'valu'"),
        ("[1]", "line 1: it is no object"),
        ('{"value": 1, "headers": 3}', "line 1: headers are an object"),
        ('{"value_base64": "%"}', "line 1: it is not base64"),
        ("\n\n", "there is no record"),
    ):
        with pytest.raises(UserError, match=said):
            parse_lines(text, key, value)


def copied(broker: PenstockBroker, copy: Copy) -> Copying:
    copying = Copying(Source(bootstrap=broker.bootstrap), copy, threading.Event())
    copying.run()
    return copying


def test_a_copy_keeps_bytes_headers_times_and_partitions(
    broker: PenstockBroker, numbers: str, make_topic: MakeTopic
) -> None:
    target = make_topic(partitions=3)
    search = Search(topic=numbers, wanted=Wanted(path="$.n >= 200"))
    copying = copied(broker, Copy(search=search, target=target, keeps_partitions=True))
    assert copying.written == 100
    _, rows = scanned(broker.bootstrap, target, limit=500)
    _, original = scanned(broker.bootstrap, numbers, limit=100)
    assert [row._replace(offset=0) for row in rows] == [row._replace(offset=0) for row in original]


def test_chosen_records_are_replayed_to_their_own_topic(broker: PenstockBroker, numbers: str) -> None:
    chosen = [(0, 5), (0, 6), (0, 90), (2, 1)]
    copying = copied(
        broker, Copy(search=Search(topic=numbers), target=numbers, chosen=chosen, keeps_partitions=True)
    )
    assert copying.written == 4
    _, rows = scanned(broker.bootstrap, numbers, start={0: 100, 1: 100, 2: 100}, newest_first=False)
    assert sorted(row.key.text for row in rows) == ["k15", "k18", "k270", "k5"]


def test_a_topic_copied_into_itself_ends(broker: PenstockBroker, numbers: str) -> None:
    assert copied(broker, Copy(search=Search(topic=numbers), target=numbers)).written == 300


def test_a_copy_that_is_refused_says_how_far_it_came(
    broker: PenstockBroker, numbers: str, make_topic: MakeTopic
) -> None:
    target = make_topic(configs={"max.message.bytes": "50"})
    with pytest.raises(Refused, match=r"\d+ records were copied, then .* refused one"):
        copied(broker, Copy(search=Search(topic=numbers), target=target))


def test_values_with_schemas_are_read_and_searched(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with small_registry() as running:
        registry = SchemaRegistry(running.url)
        fields = [{"name": "n", "type": "int"}, {"name": "s", "type": ["null", "string"]}]
        avro = json.dumps({"type": "record", "name": "R", "fields": fields})
        proto = 'syntax = "proto3"; message P { int32 n = 1; }'
        writers = [
            (
                ValueWriter(registry, topic, SchemaChoice(text=avro, subject="a")),
                {"n": 1, "s": {"string": "x"}},
            ),
            (ValueWriter(registry, topic, SchemaChoice(text=proto, kind="PROTOBUF", subject="p")), {"n": 2}),
            (
                ValueWriter(
                    registry, topic, SchemaChoice(text='{"type": "object"}', kind="JSON", subject="j")
                ),
                {"n": 3},
            ),
        ]
        write(
            broker.bootstrap,
            topic,
            *({"value": writer.write(value)} for writer, value in writers),
            {"value": b'{"n": 4}'},
            {"value": b"\0\0\0\0\x63x"},
        )
        rows = plain_rows(topic, registry=Registry(registry))
        _, found = scanned(broker.bootstrap, topic, rows=rows, newest_first=False)
        assert [row.value.kind for row in found] == ["avro", "protobuf", "json-schema", "json", "hex"]
        assert values(found)[:3] == ['{"n": 1, "s": "x"}', '{"n": 2}', '{"n": 3}']
        assert "not found" in found[4].value.problem
        _, found = scanned(broker.bootstrap, topic, rows=rows, wanted=Wanted(path="$.n >= 2"))
        assert sorted(values(found)) == ['{"n": 2}', '{"n": 3}', '{"n": 4}']
        encoder = Encoder("schema", topic, is_key=False, registry=registry, schema_id=1)
        assert encoder.text('{"n": 1, "s": {"string": "x"}}') == writers[0][0].write(
            {"n": 1, "s": {"string": "x"}}
        )
        with pytest.raises(UserError, match="the value: "):
            encoder.text('{"n": "one"}')
    _, found = scanned(
        broker.bootstrap, topic, rows=plain_rows(topic, registry=Registry(SchemaRegistry(running.url)))
    )
    assert "cannot reach the schema registry" in found[-1].value.problem


def test_records_of_kafkas_own_topics_are_documents(broker: PenstockBroker, numbers: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"group-of-{numbers}",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([numbers])
    deadline_s = time.monotonic() + WAIT_S
    while consumer.poll(0.2) is None:
        assert time.monotonic() < deadline_s
    consumer.commit(asynchronous=False)
    consumer.close()
    _, rows = scanned(
        broker.bootstrap, "__consumer_offsets", wanted=Wanted(text=f"group-of-{numbers}"), limit=100
    )
    assert {row.key.kind for row in rows} == {"kafka"}
    commits = [row for row in rows if '"partition"' in row.key.text]
    assert commits
    assert all(
        json.loads(row.value.text)["data"]["offset"] >= 0 for row in commits if row.value.kind == "kafka"
    )
