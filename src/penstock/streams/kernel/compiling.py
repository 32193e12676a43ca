"""Expressions become Python functions over rows.

`compile_items` and `compile_predicate` write the source of one function for all expressions of a step, and compile it: reading
columns, NULL rules and casts are decided once, not for each row. What cannot be computed (a cast that fails, NULL in a sum,
a division by zero) gives NULL in its place; `on_error` is told the expression, the row and the error.

The rules for NULL are ksqlDB's: a comparison with NULL is false (so its NOT is true), arithmetic and conditions on NULL fail
and so give NULL, functions say themselves what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.typing import Typer
from penstock.streams.kernel.expression_source import SourceWriter
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.source_pieces import Source
from penstock.streams.plan.expressions import Expression, Literal
from penstock.streams.plan.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Schema
from penstock.streams.plan.types import Kind, SqlType

OnError = Callable[[Expression, Row, Exception], None]


def column_types(schema: Schema) -> Callable[[str], SqlType | None]:
    """Types of a schema's columns and of the pseudo columns."""
    types: dict[str, SqlType] = {**PSEUDO_COLUMNS, **WINDOW_BOUNDS}
    types.update((column.name, column.type) for column in (*schema.key, *schema.value))
    return types.get


def compile_items(
    items: Sequence[Expression], schema: Schema, on_error: OnError | None = None
) -> Callable[[Row], tuple[Any, ...]]:
    """A function that gives the values of `items` for a row, in their order."""
    writer = _writer(schema)
    sources = [_source(writer, item) for item in items]
    body: list[str] = []
    results: list[str] = []
    for at, (item, source) in enumerate(zip(items, sources, strict=True)):
        if not source.can_fail:
            results.append(source.text)
            continue
        body += [
            "    try:",
            f"        r{at} = {source.text}",
            "    except Exception as error:",
            f"        r{at} = None",
            f"        fail({writer.constant(item)}, row, error)",
        ]
        results.append(f"r{at}")
    values = "".join(f"{each}, " for each in results)
    function: Callable[[Row], tuple[Any, ...]] = _made(
        writer, "project", [*body, f"    return ({values})"], on_error
    )
    return function


def compile_predicate(
    expression: Expression, schema: Schema, on_error: OnError | None = None
) -> Callable[[Row], bool]:
    """A function that says whether a condition is true for a row: not when it is NULL, and not when it fails."""
    writer = _writer(schema)
    source = _source(writer, expression)
    if source.type is not None and source.type.kind is not Kind.BOOLEAN:
        raise TypeRefused(f"{expression} is {source.type}, and a condition is BOOLEAN.", expression.place)
    body = [
        "    try:",
        f"        return {source.text} is True",
        "    except Exception as error:",
        f"        fail({writer.constant(expression)}, row, error)",
        "        return False",
    ]
    function: Callable[[Row], bool] = _made(writer, "decide", body, on_error)
    return function


def evaluate(expression: Expression) -> Any:
    """The value of an expression without columns. What fails is raised."""
    if isinstance(expression, Literal):
        return expression.value
    failed: list[Exception] = []
    schema = Schema((), ())
    compiled = compile_items([expression], schema, lambda _expression, _row, error: failed.append(error))
    value = compiled(Row(None, None, 0))[0]
    if failed:
        raise failed[0]
    return value


def _source(writer: SourceWriter, expression: Expression) -> Source:
    try:
        return writer.unguarded(expression)
    except RecursionError:
        raise TypeRefused("The expression is nested too deeply.", expression.place) from None


def _writer(schema: Schema) -> SourceWriter:
    return SourceWriter(schema, Typer(column_types(schema)))


def _made(writer: SourceWriter, name: str, body: list[str], on_error: OnError | None) -> Callable[..., Any]:
    text = "\n".join([*writer.helpers, f"def {name}(row):", *writer.prologue(), *body, ""])
    names = {**writer.constants, "fail": on_error or _ignore}
    exec(compile(text, f"<{name}>", "exec"), names)
    made: Callable[..., Any] = names[name]
    made.__doc__ = text
    return made


def _ignore(_expression: Expression, _row: Row, _error: Exception) -> None:
    pass
