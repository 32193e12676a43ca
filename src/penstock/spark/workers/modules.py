"""Which modules of `penstock` an executor may import: what its entry points import, and what these import in turn.

Read in the sources, with imports inside functions; nothing is run. So an executor is sent no broker and no command line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import penstock

ROOT = Path(penstock.__file__).parent
# The daemon imports by name, as the registry's formats are; Spark makes the others from what the driver has pickled.
ENTRY_POINTS = (
    "penstock.spark.internals.daemon",
    "penstock.spark.source",
    "penstock.spark.topic_tables",
    "penstock.spark.reading.task",
    "penstock.spark.writing.exactly_once",
    "penstock.spark.tasks.program",
    "penstock.streams.running.worker",
    "penstock.spark.registry_functions",
    "penstock.arrow.avro_format",
    "penstock.arrow.json_format",
    "penstock.arrow.protobuf_format",
    "penstock.schemas.avro.parsing",
    "penstock.schemas.protobuf.parsing",
)


class Module(NamedTuple):
    name: str
    path: Path
    imports: tuple[str, ...]


def executor_modules(entry_points: Iterable[str] = ENTRY_POINTS) -> list[Module]:
    """By name. A module comes with the packages that it is in, for Python imports these first."""
    found: dict[str, Module] = {}
    waiting = list(entry_points)
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if name in found or path is None:
            continue
        found[name] = Module(name, path, tuple(_imports(ast.parse(path.read_text()))))
        waiting += found[name].imports
        if "." in name:
            waiting.append(name.rpartition(".")[0])
    return [found[name] for name in sorted(found)]


def _path(name: str) -> Path | None:
    """None for what is not ours, or no module: `from penstock.model.errors import ApiError` names both kinds."""
    package, *parts = name.split(".")
    if package != penstock.__name__:
        return None
    place = ROOT.joinpath(*parts)
    for path in (place / "__init__.py", place.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        for each in node.orelse:
            yield from _imports(each)
        return
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        yield node.module
        yield from (f"{node.module}.{each.name}" for each in node.names)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child)
