"""What a session is told, by its master."""

import socket
from pathlib import Path

import pyspark
import pytest

from penstock.spark.session import has_log_settings, local_settings, patient, session, shares_this_machine


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://h:7077", "spark://h:7077"),
    ],
)
def test_a_local_master_gives_a_task_the_attempts_of_a_cluster(master: str, expected: str) -> None:
    assert patient(master) == expected


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local[2]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://localhost:7077", True),
        (f"spark://{socket.gethostname()}:7077", False),  # its workers may be elsewhere
        ("spark://far.example:7077", False),
        ("yarn", False),
        ("k8s://https://far.example:6443", False),
    ],
)
def test_the_package_is_sent_to_executors_elsewhere_only(master: str, expected: bool) -> None:
    assert shares_this_machine(master) is expected


def test_a_local_master_has_as_many_shuffle_partitions_as_slots() -> None:
    assert local_settings("local[1]") == {"spark.sql.shuffle.partitions": "1"}
    assert local_settings("local") == {"spark.sql.shuffle.partitions": "1"}


def test_what_the_user_says_about_spark_s_log_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not has_log_settings("-Xmx1g")
    assert has_log_settings("-Dlog4j2.configurationFile=mine.xml")
    (tmp_path / "log4j2.properties").touch()
    assert has_log_settings("")


def test_a_spark_that_is_too_old_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.2")
    with pytest.raises(
        RuntimeError, match=r"works with Spark 4\.2 and 4\.3, and PySpark 4\.1\.2 is installed"
    ):
        session()
