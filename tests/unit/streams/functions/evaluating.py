"""How the tables of functions are tested: SQL text, and the value it has."""

from __future__ import annotations

from typing import Any

from penstock.sql.parsing.parser import parse_expression
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.kernel.compiling import evaluate

FAILS = FunctionFailed


def value_of(text: str) -> Any:
    """What a column with this expression has: a function that fails gives FAILS, so that NULL is told from it."""
    try:
        return evaluate(parse_expression(text))
    except (FunctionFailed, TypeError):  # TypeError: arithmetic with NULL
        return FAILS
