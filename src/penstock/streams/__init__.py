"""Programs over topics, as Kafka Streams and ksqlDB have them: streams, tables, windows, joins, aggregates.

    plan ◇        what a program means: types, expressions, nodes from sources to sinks; pure data that explains itself
    functions ◇   the scalar, aggregate and table functions, each with its signatures and its rule for NULL
    formats ◇     rows from and to the bytes of records: KAFKA, JSON, DELIMITED, AVRO, PROTOBUF, JSON_SR, NONE
    kernel ◇      runs a plan record by record over stores; what it says is right
    running       a plan at work: long tasks on Spark read partitions, keep state in changelog topics, commit
    library       the Python library, whose names are here: App, col, fn, windows

Two front doors build the same plan: the Python library here, and the SQL of `penstock.sql`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.streams.library.app import App
    from penstock.streams.library.columns import col, fn, lit, struct, when
    from penstock.streams.library.failures import TopologyError
    from penstock.streams.library.windows import hopping, session, sliding, tumbling
    from penstock.streams.plan.types import decimal

_MODULES = {
    "App": "library.app",
    "col": "library.columns",
    "fn": "library.columns",
    "lit": "library.columns",
    "when": "library.columns",
    "struct": "library.columns",
    "tumbling": "library.windows",
    "hopping": "library.windows",
    "session": "library.windows",
    "sliding": "library.windows",
    "TopologyError": "library.failures",
    "decimal": "plan.types",
}
__all__ = [
    "App", "col", "fn", "lit", "when", "struct", "tumbling", "hopping", "session", "sliding", "decimal", "TopologyError",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Only what a program uses is imported."""
    if name in _MODULES:
        return getattr(import_module(f"penstock.streams.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
