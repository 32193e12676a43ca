"""Kafka's tools as the commands that `pip install` puts on the PATH: `kafka-topics` is `entry_points:topics`.

Each is the `main` of the module of its name, which is imported when the command is run and not before.
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import NoReturn

from penstock.cli.kafka import tool


def run(module: str) -> NoReturn:
    tool.leave(import_module(f"penstock.cli.kafka.{module}").main(sys.argv[1:]))


def __getattr__(name: str) -> Callable[[], NoReturn]:
    if name.startswith("_"):
        raise AttributeError(name)
    return partial(run, name)
