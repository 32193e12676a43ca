"""Expressions, from the loosest operator to the tightest: OR, AND, NOT, predicates, ||, + -, * / %, signs, single things."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from penstock.sql.parsing.reading import Reader, SyntaxRefused
from penstock.sql.parsing.tokens import TokenKind, unquoted
from penstock.sql.parsing.types import sql_type
from penstock.streams.plan.expressions import (
    Arithmetic,
    Between,
    Call,
    Case,
    Cast,
    ColumnRef,
    Comparison,
    Expression,
    FieldOf,
    In,
    IsNull,
    Lambda,
    LambdaVariable,
    Like,
    Literal,
    Logical,
    MakeArray,
    MakeMap,
    MakeStruct,
    Negative,
    Not,
    Place,
    Star,
    Subscript,
    TimeUnit,
)
from penstock.streams.plan.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, SqlType, decimal

_COMPARISONS: Final = ("=", "<>", "!=", "<=", ">=", "<", ">")
_UNITS: Final = frozenset(
    ["MILLISECOND", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS", "MONTHS", "YEARS"]
)
_UNIT_NAMES: Final = frozenset(["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "WEEKS", "MONTH", "YEAR"])
_WITH_UNITS: Final = ("ADD", "SUB")


def expression(reader: Reader) -> Expression:
    left = _conjunction(reader)
    while reader.is_next("OR"):
        place = reader.take().place
        left = Logical("OR", left, _conjunction(reader), place=place)
    return left


def _conjunction(reader: Reader) -> Expression:
    left = _negation(reader)
    while reader.is_next("AND"):
        place = reader.take().place
        left = Logical("AND", left, _negation(reader), place=place)
    return left


def _negation(reader: Reader) -> Expression:
    if reader.is_next("NOT"):
        place = reader.take().place
        return Not(_negation(reader), place=place)
    return _predicated(reader)


def _predicated(reader: Reader) -> Expression:
    operand = value_expression(reader)
    place = reader.token.place
    compared = reader.accept_any(*_COMPARISONS)
    if compared:
        operator = "<>" if compared == "!=" else compared
        return Comparison(operator, operand, value_expression(reader), place=place)
    if reader.accept("IS"):
        negated = reader.accept("NOT")
        if reader.accept("NULL"):
            return IsNull(operand, negated, place=place)
        reader.expect("DISTINCT", "FROM")
        operator = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
        return Comparison(operator, operand, value_expression(reader), place=place)
    negated = reader.accept("NOT")
    if reader.accept("BETWEEN"):
        low = value_expression(reader)
        reader.expect("AND")
        return Between(operand, low, value_expression(reader), negated, place=place)
    if reader.accept("IN"):
        reader.expect("(")
        items = reader.listed(lambda: expression(reader))
        reader.expect(")")
        return In(operand, items, negated, place=place)
    if reader.accept("LIKE"):
        return _like(reader, operand, negated, place)
    if negated:
        reader.refuse_here()
    return operand


def _like(reader: Reader, operand: Expression, negated: bool, place: Place) -> Expression:
    pattern = value_expression(reader)
    escape = None
    if reader.is_next("ESCAPE") and reader.ahead().kind is TokenKind.STRING:
        reader.take()
        escape_place = reader.token.place
        escape = reader.string()
        if len(escape) != 1:
            reader.refuse(f"Expected single character escape but got: {escape}", escape_place)
    return Like(operand, pattern, escape, negated, place=place)


def value_expression(reader: Reader) -> Expression:
    """What no comparison stands in, unless in parentheses."""
    left = _sum(reader)
    while reader.is_next("||"):
        place = reader.take().place
        left = Call("CONCAT", (left, _sum(reader)), place=place)
    return left


def _sum(reader: Reader) -> Expression:
    left = _product(reader)
    while reader.is_next("+") or reader.is_next("-"):
        token = reader.take()
        left = Arithmetic(token.text, left, _product(reader), place=token.place)
    return left


def _product(reader: Reader) -> Expression:
    left = _signed(reader)
    while reader.is_next("*") or reader.is_next("/") or reader.is_next("%"):
        token = reader.take()
        left = Arithmetic(token.text, left, _signed(reader), place=token.place)
    return left


_NUMBERS: Final = (TokenKind.INTEGER, TokenKind.DECIMAL, TokenKind.FLOAT)


def _signed(reader: Reader) -> Expression:
    place = reader.token.place
    if reader.is_next("-") and reader.ahead().kind not in _NUMBERS:
        reader.take()
        return Negative(_signed(reader), place=place)
    if reader.accept("+"):
        return Negative(_signed(reader), "+", place=place)
    return primary(reader)


def primary(reader: Reader) -> Expression:
    found = _simple(reader)
    while True:
        place = reader.token.place
        if reader.accept("["):
            index = value_expression(reader)
            reader.expect("]")
            found = Subscript(found, index, place=place)
        elif reader.is_next("->") and not reader.is_next("->", "*"):
            reader.take()
            found = FieldOf(found, reader.name(), place=place)
        else:
            return found


def _simple(reader: Reader) -> Expression:
    token = reader.token
    if token.kind in _NUMBERS or reader.is_next("-"):
        return number(reader)
    if token.kind is TokenKind.STRING:
        reader.take()
        return Literal(unquoted(token.text), STRING, place=token.place)
    if reader.accept("("):
        inner = expression(reader)
        reader.expect(")")
        return inner
    if reader.accept("NULL"):
        return Literal(None, None, place=token.place)
    word = reader.accept_any("TRUE", "FALSE")
    if word:
        return Literal(word == "TRUE", BOOLEAN, place=token.place)
    if reader.is_next("CASE"):
        return _case(reader)
    if reader.accept("CAST", "("):
        operand = expression(reader)
        reader.expect("AS")
        found = Cast(operand, sql_type(reader), place=token.place)
        reader.expect(")")
        return found
    return _constructed(reader) or _named(reader)


def number(reader: Reader) -> Literal:
    place = reader.token.place
    sign = "-" if reader.accept("-") else ""
    token = reader.token
    if token.kind not in _NUMBERS:
        reader.refuse_here()
    reader.take()
    text = sign + token.text
    if token.kind is TokenKind.INTEGER:
        value = int(text)
        if -(2**31) <= value < 2**31:
            return Literal(value, INTEGER, place=place)
        if -(2**63) <= value < 2**63:
            return Literal(value, BIGINT, place=place)
        raise _bad_number(f"Invalid numeric literal: {text}", place)
    if token.kind is TokenKind.FLOAT:
        if math.isinf(float(text)):
            raise _bad_number(f"Number overflows DOUBLE: {text}", place)
        return Literal(float(text), DOUBLE, place=place)
    return decimal_literal(Decimal(text), place)


def _bad_number(message: str, place: Place) -> SyntaxRefused:
    """ksqlDB says this after parsing, and counts one column too many."""
    return SyntaxRefused(message, Place(place.line, place.column + 1), prefix="Failed to prepare statement: ")


def decimal_literal(value: Decimal, place: Place) -> Literal:
    return Literal(value, type_of_decimal(value), place=place)


def type_of_decimal(value: Decimal) -> SqlType:
    """Of a number in the text: as many digits as it has. Between -1 and 1 the zero before the point counts."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    if -1 < value < 1:
        return decimal(scale + 1, scale)
    return decimal(len(digits) + max(0, int(exponent)), scale)


def _case(reader: Reader) -> Expression:
    place = reader.take().place
    operand = None if reader.is_next("WHEN") else value_expression(reader)
    branches: list[tuple[Expression, Expression]] = []
    while reader.accept("WHEN"):
        condition = expression(reader)
        reader.expect("THEN")
        branches.append((condition, expression(reader)))
    if not branches:
        reader.expect("WHEN")
    otherwise = expression(reader) if reader.accept("ELSE") else None
    reader.expect("END")
    return Case(operand, tuple(branches), otherwise, place=place)


def _constructed(reader: Reader) -> Expression | None:
    place = reader.token.place
    if reader.accept("ARRAY", "["):
        items = () if reader.is_next("]") else reader.listed(lambda: expression(reader))
        reader.expect("]")
        return MakeArray(items, place=place)
    if reader.is_next("MAP", "("):
        return _map(reader, place)
    if reader.is_next("STRUCT", "(") and (reader.ahead(2).text == ")" or reader.ahead(3).text == ":="):
        reader.expect("STRUCT", "(")
        fields = () if reader.is_next(")") else reader.listed(lambda: _field(reader))
        reader.expect(")")
        return MakeStruct(fields, place=place)
    return None


def _map(reader: Reader, place: Place) -> Expression | None:
    start = reader.at
    reader.expect("MAP", "(")
    if reader.accept(")"):
        return MakeMap((), place=place)
    first = expression(reader)
    if not reader.accept(":="):
        reader.at = start
        return None
    entries = [(first, expression(reader))]
    while reader.accept(","):
        key = expression(reader)
        reader.expect(":=")
        entries.append((key, expression(reader)))
    reader.expect(")")
    return MakeMap(tuple(entries), place=place)


def _field(reader: Reader) -> tuple[str, Expression]:
    name = reader.name()
    reader.expect(":=")
    return name, expression(reader)


def _named(reader: Reader) -> Expression:
    """A column, a function, or a type before a text."""
    place = reader.token.place
    if reader.accept("DECIMAL"):
        return _typed(reader, "DECIMAL", place)
    if not reader.is_name():
        reader.refuse_here()
    name = reader.name()
    if reader.token.kind is TokenKind.STRING:
        return _typed(reader, name, place)
    if reader.accept("("):
        return _call(reader, name, place)
    if reader.is_next(".") and reader.is_name(1):
        reader.take()
        return ColumnRef(reader.name(), name, place=place)
    if name in reader.lambda_names:
        return LambdaVariable(name, place=place)
    return ColumnRef(name, place=place)


def _typed(reader: Reader, name: str, place: Place) -> Expression:
    if reader.token.kind is not TokenKind.STRING:
        reader.refuse_here()
    text = reader.string()
    if name != "DECIMAL":
        reader.refuse(f"Unknown type: {name}, location:Line: {place.line}, Col: {place.column}", place)
    try:
        value = Decimal(text)
    except ArithmeticError:
        reader.refuse(f"Invalid numeric literal: {text}", place)
    return decimal_literal(value, place)


def _call(reader: Reader, name: str, place: Place) -> Expression:
    name = name.upper()
    if reader.is_next("*", ")"):
        star = Star(place=reader.take().place)
        reader.expect(")")
        return Call(name, (star,), place=place)
    if reader.accept(")"):
        return Call(name, (), place=place)
    arguments = reader.listed(lambda: _argument(reader, name))
    reader.expect(")")
    return Call(name, arguments, place=place)


def _argument(reader: Reader, function: str) -> Expression:
    place = reader.token.place
    names = _lambda_parameters(reader)
    if names is not None:
        outer = reader.lambda_names
        reader.lambda_names = (*outer, *names)
        body = expression(reader)
        reader.lambda_names = outer
        return Lambda(names, body, place=place)
    word = reader.token.word
    if word in _UNITS or (
        word in _UNIT_NAMES and function.endswith(_WITH_UNITS) and reader.ahead().text == ","
    ):
        reader.take()
        return TimeUnit(word if word.endswith("S") else word + "S", place=place)
    return expression(reader)


def _lambda_parameters(reader: Reader) -> tuple[str, ...] | None:
    """`x =>` or `(x, y) =>`, if that stands here; it is taken then."""
    if reader.is_name() and reader.ahead().text == "=>":
        found = (reader.name(),)
        reader.take()
        return found
    start = reader.at
    if reader.accept("(") and reader.is_name():
        names = [reader.name()]
        while reader.accept(",") and reader.is_name():
            names.append(reader.name())
        if reader.accept(")") and reader.accept("=>"):
            return tuple(names)
    reader.at = start
    return None
