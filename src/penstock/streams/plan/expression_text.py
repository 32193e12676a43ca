"""An expression as ksqlDB writes it: in messages, in names of columns that have none, in EXPLAIN."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from penstock.streams.plan import expressions as e
from penstock.streams.plan.types import Kind


def text_of(expression: e.Expression) -> str:
    match expression:
        case e.Literal(value=value, type=type_):
            return _literal(value, None if type_ is None else type_.kind)
        case e.ColumnRef(name=name, source=source):
            return name if source is None else f"{source}.{name}"
        case e.Arithmetic() | e.Logical() | e.Comparison():
            return f"({text_of(expression.left)} {expression.operator} {text_of(expression.right)})"
        case e.Negative(operand=operand, sign=sign):
            inner = text_of(operand)
            return f"{sign} {inner}" if sign == "-" and inner.startswith("-") else f"{sign}{inner}"
        case e.Not(operand=operand):
            return f"(NOT {text_of(operand)})"
        case e.IsNull(operand=operand, negated=negated):
            return f"({text_of(operand)} IS {'NOT ' if negated else ''}NULL)"
        case e.Between() | e.In() | e.Like():
            return _predicate(expression)
        case e.Case():
            return _case(expression)
        case e.Cast(operand=operand, type=type_):
            return f"CAST({text_of(operand)} AS {type_})"
        case e.Call(name=name, arguments=arguments):
            return f"{name}({'*' if not arguments and name == 'COUNT' else _list(arguments)})"
        case e.PythonCall(name=name, arguments=arguments):
            return f"{name}({_list(arguments)})"
        case e.Star():
            return "*"
        case e.TimeUnit(unit=unit):
            return unit
        case e.Lambda(parameters=parameters, body=body):
            return f"({', '.join(parameters)}) => {text_of(body)}"
        case e.LambdaVariable(name=name):
            return name
        case _:
            return _structured(expression)


def _structured(expression: e.Expression) -> str:
    match expression:
        case e.FieldOf(operand=operand, name=name):
            return f"{text_of(operand)}->{name}"
        case e.Subscript(operand=operand, index=index):
            return f"{text_of(operand)}[{text_of(index)}]"
        case e.MakeArray(items=items):
            return f"ARRAY[{_list(items)}]"
        case e.MakeMap(entries=entries):
            return "MAP(" + ", ".join(f"{text_of(key)}:={text_of(value)}" for key, value in entries) + ")"
        case e.MakeStruct(fields=fields):
            return "STRUCT(" + ", ".join(f"{name}:={text_of(value)}" for name, value in fields) + ")"
        case _:
            return repr(expression)


def _list(items: tuple[e.Expression, ...]) -> str:
    return ", ".join(text_of(item) for item in items)


def _predicate(expression: e.Between | e.In | e.Like) -> str:
    operand = text_of(expression.operand)
    if isinstance(expression, e.Between):
        text = f"({operand} BETWEEN {text_of(expression.low)} AND {text_of(expression.high)})"
    elif isinstance(expression, e.In):
        text = f"({operand} IN ({_list(expression.items)}))"
    else:
        escape = "" if expression.escape is None else f" ESCAPE '{expression.escape}'"
        text = f"({operand} LIKE {text_of(expression.pattern)}{escape})"
    return f"(NOT {text})" if expression.negated else text


def _case(expression: e.Case) -> str:
    parts = ["CASE"]
    if expression.operand is not None:
        parts.append(text_of(expression.operand))
    for condition, result in expression.branches:
        parts.append(f"WHEN {text_of(condition)} THEN {text_of(result)}")
    if expression.otherwise is not None:
        parts.append(f"ELSE {text_of(expression.otherwise)}")
    return "(" + " ".join([*parts, "END"]) + ")"


def _literal(value: Any, kind: Kind | None) -> str:
    match kind, value:
        case (None, _) | (_, None):
            return "null"
        case Kind.BOOLEAN, _:
            return "true" if value else "false"
        case Kind.STRING, _:
            return "'" + str(value).replace("'", "''") + "'"
        case Kind.DOUBLE, _:
            return _scientific(value)
        case Kind.BYTES, _:
            return (
                "ByteBuffer.wrap(new byte[]{" + ",".join(str(b - 256 if b > 127 else b) for b in value) + "})"
            )
        case _:
            return str(value)


def _scientific(value: float) -> str:
    """1.5 is 1.5E0, 100.0 is 1E2."""
    if value == 0 or value != value or value in (float("inf"), float("-inf")):
        return "0E0" if value == 0 else str(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{'-' if sign else ''}{text[0]}{fraction}E{int(exponent) + len(text) - 1}"
