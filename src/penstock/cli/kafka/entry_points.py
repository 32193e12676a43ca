"""Kafka's tools as commands: those that `pip install` puts on the PATH (`kafka-topics` is `entry_points:topics`), and
`python -m penstock.cli.kafka topics`, which `bin/` runs.

Each is a module of its name with a TABLE (or SUBCOMMANDS) and `execute`, which is imported when the command is run and
not before.
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import NoReturn

from penstock.cli.kafka import tool


def run(name: str, argv: list[str] | None = None) -> NoReturn:
    words = sys.argv[1:] if argv is None else argv
    module = import_module(f"penstock.cli.kafka.{name}")
    subcommands = getattr(module, "SUBCOMMANDS", None)
    table = module.TABLE if subcommands is None else subcommands.table_for(words)
    tool.leave(tool.run(table, module.execute, words))


def __getattr__(name: str) -> Callable[[], NoReturn]:
    if name.startswith("_"):
        raise AttributeError(name)
    return partial(run, name)
