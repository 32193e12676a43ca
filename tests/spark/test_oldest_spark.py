"""The oldest Spark that is supported: some of the tests here once more, in a process with that Spark and its own JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALL_TIMEOUT_S = 600
TESTS_TIMEOUT_S = 300
# Every private part, and one of each kind of what users do.
TESTS = (
    "internals/test_canaries.py",
    "test_versions.py",
    "test_reading.py",
    "test_sink.py::test_keys_values_and_headers_arrive_as_they_were",
    "test_sink.py::test_a_batch_is_written_once_in_transactions",
    "test_exactly_once.py::test_a_stream_within_foreach_batch_writes_each_batch_once",
    "test_streaming.py::test_a_query_goes_on_where_its_checkpoint_ends",
    "test_streaming.py::test_a_limit_makes_several_batches_of_what_is_available_now",
    "test_threads.py",
    "test_values.py::test_the_rows_are_those_of_from_json",
    "test_catalog.py",
)
# What a session in this process has put there, and what pytest tells its workers.
OF_THIS_PROCESS = ("SPARK_", "PYSPARK_", "PYTEST_", "PENSTOCK_")


@pytest.fixture(scope="module")
def oldest_spark() -> Path:
    done = subprocess.run(
        [ROOT / "scripts" / "oldest-spark", sys.prefix],
        stdout=subprocess.PIPE,
        text=True,
        timeout=INSTALL_TIMEOUT_S,
        check=True,
    )
    return Path(done.stdout.strip())


@pytest.mark.timeout(INSTALL_TIMEOUT_S + TESTS_TIMEOUT_S)
def test_what_users_do_and_each_private_part_work_with_the_oldest_spark(
    oldest_spark: Path, tmp_path: Path
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OF_THIS_PROCESS)}
    environment["PYTHONPATH"] = str(oldest_spark)
    print_version = "import pyspark; print(pyspark.__version__)"
    version = subprocess.check_output([sys.executable, "-c", print_version], env=environment, text=True)
    assert f"pyspark-{version.strip()}" == oldest_spark.name
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *(f"--basetemp={tmp_path / 'tests'}", *(f"tests/spark/{each}" for each in TESTS)),
        ],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TESTS_TIMEOUT_S,
    )
    assert done.returncode == 0, f"with PySpark {version}:\n{done.stdout}"
