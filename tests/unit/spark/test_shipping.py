"""What is sent to executors, and what they do with it."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.workers import shipping
from penstock.spark.workers.c_libraries import needed_c_library
from penstock.spark.workers.distributions import distribution_files, needed_distributions
from penstock.spark.workers.modules import executor_modules
from penstock.spark.workers.shipped import (
    LIBRARIES,
    MANIFEST,
    PACKAGE,
    CLibrary,
    Kind,
    binary_kind,
    c_library,
    kind_here,
    mismatch,
    take_in,
)
from penstock.spark.workers.shipping import check_python, shipping_settings


def unpacked(directory: Path, *, kind: Kind, times_ns: dict[str, int]) -> Path:
    for name in (LIBRARIES, PACKAGE):
        root = directory / name
        root.mkdir()
        for source in times_ns:
            (root / source).write_text("")
        (root / MANIFEST).write_text(json.dumps({**kind.form(), "modified_ns": times_ns}))
    return directory / PACKAGE


def test_libraries_that_a_task_needs_are_sent_and_spark_and_tools_are_not() -> None:
    names = {each.name.lower() for each in needed_distributions()}
    assert {"numba", "llvmlite", "numpy", "pyarrow", "pandas", "confluent-kafka", "cramjam"} <= names
    assert names.isdisjoint(
        {"penstock", "pyspark", "py4j", "duckdb", "pytest", "mypy", "aiokafka", "click", "mkdocs"}
    )


def test_every_library_that_an_executor_s_modules_import_is_sent() -> None:
    imported = {name.split(".")[0] for module in executor_modules() for name in module.imports}
    sent = {
        name.parts[0].removesuffix(".py")
        for each in needed_distributions()
        for name, _ in distribution_files(each)
    }
    assert imported - set(sys.stdlib_module_names) - sent == {"penstock", "pyspark"}


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
    package = unpacked(tmp_path, kind=kind_here(), times_ns=times_ns)
    take_in(package)
    for root in (package, tmp_path / LIBRARIES):
        assert {name: os.stat(root / name).st_mtime_ns for name in times_ns} == times_ns


def test_libraries_for_another_python_are_refused_with_both_named(tmp_path: Path) -> None:
    package = unpacked(tmp_path, kind=kind_here()._replace(binary="cpython-399-strange"), times_ns={})
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
    form = kind_here()._replace(binary="cpython-399-strange").form()
    other.write_text(f"#!/bin/sh\necho '{json.dumps(form)}'\n")
    other.chmod(0o700)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    check_python({})
    with pytest.raises(RuntimeError, match="is cpython-399-strange"):
        check_python({"spark.pyspark.python": str(other)})  # the setting wins, as with Spark


class Wheel(Distribution):
    """An installed distribution, as far as the tags of its wheel."""

    def __init__(self, *platforms: str) -> None:
        self._platforms = platforms

    def read_text(self, filename: str) -> str | None:
        tags = "".join(f"Tag: cp311-cp311-{platform}\n" for platform in self._platforms)
        return f"Wheel-Version: 1.0\n{tags}" if filename == "WHEEL" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("platforms", "expected"),
    [
        ([("any",)], "unknown"),
        ([("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64")], "glibc 2.17"),
        ([("manylinux2014_x86_64",), ("manylinux_2_34_x86_64",), ("any",)], "glibc 2.34"),
        ([("musllinux_1_2_x86_64",)], "musl 1.2"),
        ([("linux_x86_64",)], str(c_library())),  # compiled on this machine
    ],
)
def test_the_c_library_that_is_needed_is_read_from_wheels(
    platforms: list[tuple[str, ...]], expected: str
) -> None:
    assert str(needed_c_library(Wheel(*each) for each in platforms)) == expected


@pytest.mark.parametrize(
    ("there", "complaint"),
    [
        (CLibrary("glibc", (2, 34)), None),
        (CLibrary("glibc", (2, 41)), None),
        (CLibrary("", (0, 0)), None),  # nobody can tell
        (
            CLibrary("glibc", (2, 17)),
            "need glibc 2.34 or later, and python3 runs with glibc 2.17. Run executors on a system",
        ),
        (
            CLibrary("musl", (0, 0)),
            "need glibc 2.34 or later, and python3 runs with musl. Run executors on a system",
        ),
    ],
)
def test_another_c_library_is_told_in_one_line(there: CLibrary, complaint: str | None) -> None:
    needed = Kind("cpython-311-x86_64-linux-gnu", CLibrary("glibc", (2, 34)))
    told = mismatch(needed=needed, python="python3", there=needed._replace(c_library=there))
    if complaint is None:
        assert told is None
    else:
        assert told is not None
        assert complaint in told
        assert "\n" not in told


def test_libraries_for_a_newer_c_library_are_refused_where_they_are_unpacked(tmp_path: Path) -> None:
    newer = kind_here()._replace(c_library=CLibrary(c_library().name, (99, 0)))
    package = unpacked(tmp_path, kind=newer, times_ns={})
    with pytest.raises(
        SystemExit, match=f"need {c_library().name} 99.0 or later, and .* runs with {c_library()}"
    ):
        take_in(package)
