"""What is measured beside Kafka Streams: the parts that need neither."""

import os
import sys
from pathlib import Path

import pytest

from bench.clients.stream_drain import Moment, watch
from bench.clients.stream_latency import time_in
from bench.clients.stream_records import key_of, stream_records, table_records, value_of
from bench.measure import Sample, Scale
from bench.report import markdown, summarise_all
from bench.runner import Results, run_rounds
from bench.servers import KAFKA_STREAMS, SPARK, STREAMS
from bench.spark import tree_memory_bytes
from bench.streams import SOURCE, StreamsProgram
from bench.workloads.spark_streams import SparkFirstRow
from bench.workloads.sql_server import KEY_COUNT, RECORD_COUNT, SqlServer, lookup
from bench.workloads.stream_plans import BULKS, PACED, StreamLatency, StreamThroughput
from penstock.testing.processes import ProcessFailed

WORKLOADS = (StreamThroughput(), StreamLatency(), SqlServer())
# Says which words it hears, as both kinds of programs do.
HEARS = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    print("running" if line.startswith("start latest app in - out at_least_once") else "stopped", flush=True)
"""


def test_every_second_record_passes_and_each_has_its_length() -> None:
    records = list(stream_records(40, 10))
    assert {len(value) for _, value in records} == {100}
    assert sum(not value.endswith("!") for _, value in records) == 20
    assert {key for key, _ in records} == {key for key, _ in table_records(10)}


def test_keys_have_equally_many_records() -> None:
    """By which the SQL server's workload knows when its table is whole."""
    keys = [key_of(number, KEY_COUNT) for number in range(RECORD_COUNT)]
    assert keys.count("k0") == RECORD_COUNT // KEY_COUNT


def test_the_time_of_a_record_is_found_wherever_a_plan_has_left_it() -> None:
    assert time_in(value_of(7).encode()) == 7
    assert time_in(b'{"count":12,"latest":"00000000000000000042 ..."}') == 42
    with pytest.raises(SystemExit, match="without its time"):
        time_in(b"12")


def test_what_warms_up_is_not_counted() -> None:
    moments = iter(
        [Moment(0, 0, 0), Moment(1, 90, 5), Moment(2, 110, 7), Moment(3, 200, 8), Moment(4, 300, 9)]
    )
    begun, ended = watch(lambda: next(moments), 100, 300)
    assert (begun, ended) == (Moment(2, 110, 7), Moment(4, 300, 9))


def test_records_that_do_not_come_end_the_watch() -> None:
    seconds = iter(range(0, 1000, 10))
    with pytest.raises(SystemExit, match="5 of 10 records came"):
        watch(lambda: Moment(next(seconds), 5, 0), 1, 10)


def test_a_program_is_told_and_waited_for(tmp_path: Path) -> None:
    program = StreamsProgram([sys.executable, "-c", HEARS], tmp_path / "log")
    try:
        program.wait_for("ready")
        with program.plan("latest", "app", "in", "out", guarantee="at_least_once"):
            assert tree_memory_bytes(program.pid) > 1_000_000
    finally:
        program.close()


def test_a_program_that_ends_says_why(tmp_path: Path) -> None:
    complains = "import sys; print('no such topic', file=sys.stderr)"
    program = StreamsProgram([sys.executable, "-c", complains], tmp_path / "log")
    try:
        with pytest.raises(ProcessFailed, match="no such topic"):
            program.wait_for("ready")
    finally:
        program.close()


def test_the_java_program_has_every_plan_of_theirs() -> None:
    source = SOURCE.read_text()
    kinds = {each.kind for each in BULKS} | {each.kind for each in PACED if each.same_as is None}
    assert [kind for kind in sorted(kinds) if f'case "{kind}":' not in source] == []


def test_what_is_measured_already_comes_before_it_is_taken_again() -> None:
    keys = [each.key for each in PACED]
    for at, each in enumerate(PACED):
        assert each.same_as is None or each.same_as in keys[:at]


def test_memory_of_a_process_that_is_gone_is_none() -> None:
    assert tree_memory_bytes(os.getpid()) > 10_000_000
    assert tree_memory_bytes(2**22 + 1) == 0


def test_a_lookup_is_a_request_of_its_own_key() -> None:
    assert "K = 'k7'" in lookup(KEY_COUNT + 7)["body"]


def test_streams_have_a_section_of_their_own() -> None:
    results = Results()
    for workload in WORKLOADS:
        for server in workload.server_names:
            ours = server == STREAMS
            results.add(
                workload.name, server, Sample({row.key: 4.0 if ours else 1.0 for row in workload.rows})
            )
    start = SparkFirstRow()
    results.add(start.name, SPARK, Sample({"seconds": 1.0}))
    lines = summarise_all([start, *WORKLOADS], results, "today")
    spark, streams = markdown(lines, {}, results, Scale(quick=False)).split("## Streams")
    assert "session to the first row" in spark
    assert "session to the first row" not in streams
    assert "| | Kafka Streams 4.3.1 | penstock.streams |" in streams
    assert "| exactly once, count by key, p50, ms | 1.00 | 4.00 | 4.00 × | ≤ 4 × | yes |" in streams
    assert "| pull query by key, p50, ms | – | 4.00 | – | ≤ 3 ms (value) | **no** |" in streams
    assert {line["sides"] for line in lines[1:]} == {(KAFKA_STREAMS, STREAMS)}


def test_rounds_can_be_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqlServer, "run", lambda *_: Sample({"first_s": 1.0}))
    results = run_rounds([SqlServer()], [STREAMS], Scale(quick=False), most_rounds=2)
    assert len(results.samples[SqlServer.name][STREAMS]) == 2
