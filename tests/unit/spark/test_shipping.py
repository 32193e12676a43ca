"""What is sent to executors, and what they do with it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from penstock.spark.workers import shipping
from penstock.spark.workers.distributions import distribution_files, needed_distributions
from penstock.spark.workers.shipped import LIBRARIES, MANIFEST, PACKAGE, binary_kind, take_in
from penstock.spark.workers.shipping import check_python, shipping_settings


def unpacked(directory: Path, *, kind: str, times_ns: dict[str, int]) -> Path:
    for name in (LIBRARIES, PACKAGE):
        root = directory / name
        root.mkdir()
        for source in times_ns:
            (root / source).write_text("")
        (root / MANIFEST).write_text(json.dumps({"binary_kind": kind, "modified_ns": times_ns}))
    return directory / PACKAGE


def test_libraries_that_a_task_needs_are_sent_and_spark_and_tools_are_not() -> None:
    names = {each.name.lower() for each in needed_distributions()}
    assert {"numba", "llvmlite", "numpy", "pyarrow", "pandas", "confluent-kafka", "cramjam"} <= names
    assert names.isdisjoint({"penstock", "pyspark", "py4j", "duckdb", "pytest", "mypy", "aiokafka"})


def test_compiled_parts_are_sent_and_tests_are_not() -> None:
    numpy = next(each for each in needed_distributions() if each.name == "numpy")
    names = [name for name, _ in distribution_files(numpy)]
    assert any(name.suffix == ".so" for name in names)
    assert any(name.parts[0] == "numpy.libs" for name in names)
    assert not any("tests" in name.parts for name in names)


def test_archives_and_paths_of_the_user_are_sent_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "libraries_archive", lambda: Path("/l.tar.gz"))
    monkeypatch.setattr(shipping, "package_archive", lambda: Path("/p.tar.gz"))
    given = {"spark.archives": "mine.zip#mine", "spark.executorEnv.PYTHONPATH": "./mine"}
    settings = shipping_settings(given)
    assert settings["spark.archives"] == f"mine.zip#mine,/l.tar.gz#{LIBRARIES},/p.tar.gz#{PACKAGE}"
    assert settings["spark.executorEnv.PYTHONPATH"].startswith(f"./mine:./{PACKAGE}:./{LIBRARIES}:/")


def test_unpacked_sources_get_their_times_back(tmp_path: Path) -> None:
    times_ns = {"a.py": 1_700_000_000_123_456_789, "b.py": 1_600_000_000_000_000_001}
    package = unpacked(tmp_path, kind=binary_kind(), times_ns=times_ns)
    take_in(package)
    for root in (package, tmp_path / LIBRARIES):
        assert {name: os.stat(root / name).st_mtime_ns for name in times_ns} == times_ns


def test_libraries_for_another_python_are_refused_with_both_named(tmp_path: Path) -> None:
    package = unpacked(tmp_path, kind="cpython-399-strange", times_ns={})
    with pytest.raises(SystemExit, match=f"are for cpython-399-strange, and .* is {binary_kind()}"):
        take_in(package)


def test_an_installed_package_is_left_as_it_is(tmp_path: Path) -> None:
    take_in(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_python_for_executors_that_is_not_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python3")
    with pytest.raises(
        RuntimeError, match="/nowhere/python3, the Python for executors, is not on this machine"
    ):
        check_python({})


def test_a_python_for_executors_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho cpython-399-strange\n")
    other.chmod(0o700)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    check_python({})
    with pytest.raises(RuntimeError, match="is cpython-399-strange"):
        check_python({"spark.pyspark.python": str(other)})  # the setting wins, as with Spark
