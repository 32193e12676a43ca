"""Private parts of Spark are touched in penstock.spark.internals only, and each of its modules has its canary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock.spark

ROOT = Path(__file__).parents[3]
SPARK = Path(penstock.spark.__file__).parent
ROOM = SPARK / "internals"
CANARIES = ROOT / "tests" / "spark" / "internals" / "test_canaries.py"
# What Spark's API reference documents.
PUBLIC = frozenset(
    {
        "pyspark",
        "pyspark.sql",
        "pyspark.sql.datasource",
        "pyspark.sql.functions",
        "pyspark.sql.streaming.datasource",
        "pyspark.sql.streaming.listener",
        "pyspark.sql.streaming.query",
        "pyspark.sql.streaming.readwriter",
        "pyspark.sql.types",
    }
)
BY_NAME = ("getattr", "hasattr", "setattr", "delattr")
NAMED_TUPLES = frozenset({"_replace", "_asdict", "_fields", "_make"})
PRIVATE_NAME = re.compile(r"_[a-z]\w*")  # librdkafka's own error codes are _IN_CAPITALS
JVM_CLASS = re.compile(r"org\.apache\.(spark|hadoop|logging)\.")
MODULE = re.compile(r"pyspark(\.\w+)+")


def private_parts(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (f"import {each.name}" for each in node.names if _is_private_module(each.name))
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            if _is_private_module(node.module):
                yield f"from {node.module} import"
            elif node.module.startswith("pyspark"):
                yield from (each.name for each in node.names if PRIVATE_NAME.fullmatch(each.name))
        elif isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not is_own and PRIVATE_NAME.fullmatch(node.attr) and node.attr not in NAMED_TUPLES:
                yield f".{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
            name = node.args[1]
            if isinstance(name, ast.Constant) and PRIVATE_NAME.fullmatch(str(name.value)):
                yield f"{node.func.id} {name.value}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_module = MODULE.fullmatch(node.value) and _is_private_module(node.value)
            if is_module or JVM_CLASS.search(node.value):
                yield repr(node.value)


def _is_private_module(name: str) -> bool:
    return name.split(".")[0] == "py4j" or (name.split(".")[0] == "pyspark" and name not in PUBLIC)


def sources() -> list[Path]:
    found = [path for path in SPARK.rglob("*.py") if not path.is_relative_to(ROOM)]
    return sorted([*found, *(ROOT / "examples").rglob("*.py")])


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_private_part_of_spark_is_touched_outside_of_its_room(path: Path) -> None:
    assert list(private_parts(path.read_text())) == []


@pytest.mark.parametrize(
    "planted",
    [
        "spark._jvm.System.exit(0)",
        "spark.sparkContext._jsc.sc()",
        "frame._jdf",
        'getattr(frame, "_jdf")',
        "SparkContext._active_spark_context",
        "from pyspark.daemon import manager",
        "import pyspark.java_gateway",
        "from py4j.protocol import Py4JError",
        "from pyspark.sql.pandas.types import to_arrow_schema",
        'import_module("pyspark.worker")',
        'name = "org.apache.spark.util.Utils"',
    ],
)
def test_a_private_part_is_found(planted: str) -> None:
    assert len(list(private_parts(planted))) == 1


def test_each_module_of_the_room_has_its_canary_and_its_line() -> None:
    modules = {path.stem for path in ROOM.glob("*.py")} - {"__init__"}
    tests = re.findall(r"^def test_(\w+)\(", CANARIES.read_text(), re.MULTILINE)
    assert {module for module in modules if not any(test.startswith(f"{module}_") for test in tests)} == set()
    assert len(tests) == len(modules), "one each"
    lines = re.findall(r"^    (\w+)  +\S", (ROOM / "__init__.py").read_text(), re.MULTILINE)
    assert lines == sorted(modules)
