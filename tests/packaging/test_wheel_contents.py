"""What the wheel holds: the package, and nothing that only a checkout needs."""

import tomllib
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

LARGEST_BYTES = 4_000_000


@pytest.fixture
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_everything_in_the_wheel_is_penstock(names: list[str]) -> None:
    assert {name.split("/")[0].split("-")[0] for name in names} == {"penstock"}


def test_no_simulation_chaos_tests_or_bench_is_in_the_wheel(names: list[str]) -> None:
    folders = {folder for name in names for folder in name.split("/")[:-1]}
    assert not folders & {
        "simulation",
        "chaos",
        "liar",
        "apache",
        "tests",
        "bench",
        "examples",
        "__pycache__",
    }


def test_every_file_of_the_package_is_in_the_wheel(names: list[str]) -> None:
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source))
        for path in (source / "penstock").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= set(names)
    assert {"penstock/py.typed", "penstock/spark/log4j2.properties"} <= set(names)


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < LARGEST_BYTES


def test_the_wheel_brings_every_command(wheel: Path, names: list[str]) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    (path,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    with zipfile.ZipFile(wheel) as archive:
        parser = ConfigParser()
        parser.read_string(archive.read(path).decode())
    assert dict(parser["console_scripts"]) == declared
    assert declared.keys() >= {"penstock", "kafka-topics", "kafka-console-consumer"}
