import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from bench.clients.produce_json import json_checksum, json_value
from bench.measure import Sample, Scale
from bench.report import markdown, summarise_all, table_line
from bench.runner import Results, open_contexts
from bench.servers import CONNECTOR, PENSTOCK, SPARK, TUNED_CONNECTOR
from bench.spark import tree_cpu_seconds
from bench.workloads.spark_bulk import SparkRead
from bench.workloads.start import StartToFirstAck

READ = SparkRead(record_bytes=100, record_count=1_000, targets={CONNECTOR: 2.5, TUNED_CONNECTOR: 1.4})


def results_of_reading() -> Results:
    results = Results()
    beside, beside_tuned = (row.key for row in READ.rows)
    results.add(READ.name, CONNECTOR, Sample({beside: 1.0}, {beside: 4.0}))
    results.add(READ.name, TUNED_CONNECTOR, Sample({beside_tuned: 2.0}, {beside_tuned: 3.0}))
    ours = {beside: 3.0, beside_tuned: 3.0}
    results.add(READ.name, SPARK, Sample(ours, dict.fromkeys(ours, 1.0)))
    return results


def test_a_row_compares_the_sides_that_it_names() -> None:
    default, tuned = summarise_all([READ], results_of_reading(), "today")
    assert (default["ratio"], default["met"]) == (3.0, True)
    assert (tuned["ratio"], tuned["met"]) == (1.5, True)
    assert table_line(tuned).endswith(
        "| 2.00 | 3.00 | 1.50 × | ≥ 1.4 × | yes | 3.00 / 1.00 s per million rows |"
    )


def test_rows_about_spark_have_a_table_of_their_own() -> None:
    results = results_of_reading()
    start = StartToFirstAck()
    results.add(start.name, PENSTOCK, Sample({"seconds": 0.1}))
    lines = summarise_all([start, READ], results, "today")
    servers, spark = markdown(lines, {}, results, Scale(quick=False)).split("## Topics in Spark")
    assert "| start to first acknowledged record, s |" in servers
    assert "| | Spark's connector | penstock.spark |" in spark
    assert "start to first" not in spark


def test_results_from_before_there_were_sides_are_of_servers() -> None:
    (line,) = summarise_all([StartToFirstAck()], results_of_start(), "today")
    before = {key: value for key, value in line.items() if key != "sides"}
    assert table_line(before) == table_line(line)


def results_of_start() -> Results:
    results = Results()
    results.add(StartToFirstAck.name, PENSTOCK, Sample({"seconds": 0.1}))
    return results


def test_the_sides_of_spark_share_one_broker(tmp_path: Path) -> None:
    with ExitStack() as stack:
        contexts = open_contexts([CONNECTOR, SPARK], tmp_path, Scale(quick=False), stack)
        assert contexts[CONNECTOR].host is contexts[SPARK].host is contexts[PENSTOCK]


def test_the_cpu_time_of_a_process_has_that_of_its_children() -> None:
    before = tree_cpu_seconds(os.getpid())
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", busy], check=True, timeout=60)
    assert tree_cpu_seconds(os.getpid()) - before >= 0.25


def test_the_sums_over_json_values_are_known_without_reading_them() -> None:
    values = [json.loads(json_value(number)) for number in range(2_001)]
    read = sum(value["id"] + len(value["item"]) + value["paid"] for value in values)
    assert read + int(sum(value["price"] for value in values)) == json_checksum(2_001)
