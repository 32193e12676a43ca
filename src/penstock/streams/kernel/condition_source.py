"""The Python source of conditions: comparisons, AND, OR, NOT, BETWEEN, IN, LIKE and CASE.

A comparison with NULL is false, so its NOT is true. A condition that is NULL by itself (a BOOLEAN column) has no
answer: it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from penstock.streams.functions import coercion, iso_times, operators
from penstock.streams.functions.comparing import signed
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.typing import in_list
from penstock.streams.kernel.source_pieces import Source
from penstock.streams.plan import expressions as e
from penstock.streams.plan import types as t
from penstock.streams.plan.types import Kind

if TYPE_CHECKING:
    from penstock.streams.kernel.expression_source import SourceWriter

_PYTHON: Final = {"=": "==", "<>": "!=", "!=": "!="}
_ORDERS: Final = ("<", "<=", ">", ">=")


class ConditionWriter:
    def __init__(self, writer: SourceWriter) -> None:
        self.w = writer

    def comparison(
        self, operator: str, left: Source, right: Source, left_names: tuple[str, str] | None = None
    ) -> Source:
        """`left_names`: how the left side stands first and again, where it is used in a second comparison, too."""
        base = {"IS DISTINCT FROM": "<>", "IS NOT DISTINCT FROM": "="}.get(operator)
        if base is not None:
            return self._distinct(base, left, right)
        first, a = left_names or self.w.named(left)
        second, b = self.w.named(right)
        left_value, right_value, fails = self._compared(left, right, a, b)
        test = self._test(operator, left_value, right_value, left, right)
        checks = []
        for how, again, piece in ((first, a, left), (second, b, right)):
            if piece.can_be_null or how != again:
                checks.append(f"{how} is None")
        text = f"(False if {' or '.join(checks)} else {test})" if checks else f"({test})"
        return self.w.wrap(text, t.BOOLEAN, left, right, null=False, fails=fails)

    def _distinct(self, base: str, left: Source, right: Source) -> Source:
        x, y = self.w.temporary(), self.w.temporary()
        left_value, right_value, fails = self._compared(left, right, x, y)
        test = self._test(base, left_value, right_value, left, right)
        apply = self.w.constant(_distinct if base == "<>" else _not_distinct)
        text = f"{apply}({left.text}, {right.text}, lambda {x}, {y}: {test})"
        return self.w.wrap(text, t.BOOLEAN, left, right, null=False, fails=fails)

    def _compared(self, left: Source, right: Source, a: str, b: str) -> tuple[str, str, bool]:
        """Both sides as values that Python compares as Java would, and whether getting them can fail."""
        assert left.type is not None
        assert right.type is not None
        kinds = (left.type.kind, right.type.kind)
        if Kind.DECIMAL in kinds and Kind.DOUBLE in kinds:
            to_decimal = self.w.constant(operators.decimal_of_double)
            return (
                f"{to_decimal}({a})" if kinds[0] is Kind.DOUBLE else a,
                f"{to_decimal}({b})" if kinds[1] is Kind.DOUBLE else b,
                True,
            )
        if any(kind in coercion.TIMES for kind in kinds):
            return self._compared_times(kinds, a, b)
        return a, b, False

    def _compared_times(self, kinds: tuple[Kind, Kind], a: str, b: str) -> tuple[str, str, bool]:
        if Kind.TIME in kinds:
            parse, day = iso_times.parse_time, False
        elif Kind.TIMESTAMP in kinds:
            parse, day = iso_times.parse_timestamp, True
        else:
            parse, day = iso_times.parse_date, False
        texts = []
        for kind, name in zip(kinds, (a, b), strict=True):
            if kind is Kind.STRING:
                texts.append(f"{self.w.constant(parse)}({name})")
            else:
                texts.append(f"({name} * {iso_times.DAY_MS})" if kind is Kind.DATE and day else name)
        return texts[0], texts[1], Kind.STRING in kinds

    def _test(self, operator: str, a: str, b: str, left: Source, right: Source) -> str:
        assert left.type is not None
        assert right.type is not None
        if operator in _ORDERS and left.type.kind is Kind.BYTES:
            order = self.w.constant(signed)
            return f"{order}({a}) {operator} {order}({b})"
        if operator in ("<>", "!=") and Kind.DOUBLE in (left.type.kind, right.type.kind):
            return f"({a} < {b} or {a} > {b})"
        return f"{a} {_PYTHON.get(operator, operator)} {b}"

    # ---------------------------------------------------------------- conditions

    def _condition(self, expression: e.Expression) -> Source:
        """As something that is never NULL."""
        piece = self.w.source(expression)
        if not piece.can_be_null:
            return piece
        return self.w.wrap(
            f"{self.w.constant(operators.truth)}({piece.text})", t.BOOLEAN, piece, null=False, fails=True
        )

    def predicate(self, expression: e.Expression) -> Source:
        match expression:
            case e.Logical(operator=operator, left=left, right=right):
                one, other = self._condition(left), self._condition(right)
                return self.w.wrap(
                    f"({one.text} {operator.lower()} {other.text})", t.BOOLEAN, one, other, null=False
                )
            case e.Not(operand=operand):
                inner = self._condition(operand)
                return self.w.wrap(f"(not {inner.text})", t.BOOLEAN, inner, null=False)
            case e.IsNull(operand=operand, negated=negated):
                inner = self.w.source(operand)
                if inner.is_name and not inner.can_be_null:
                    return Source(str(negated), t.BOOLEAN, can_be_null=False, is_name=True)
                text = f"({self.w.named(inner)[0]} is {'not ' if negated else ''}None)"
                return self.w.wrap(text, t.BOOLEAN, inner, null=False)
            case e.Between():
                return self._between(expression)
            case e.In():
                return self._in(expression)
            case e.Like():
                return self._like(expression)
        raise TypeRefused(f"{expression} cannot be computed.", expression.place)

    def _negated(self, made: Source, negated: bool) -> Source:
        return self.w.wrap(f"(not {made.text})", t.BOOLEAN, made, null=False) if negated else made

    def _between(self, expression: e.Between) -> Source:
        operand = self.w.source(expression.operand)
        first, again = self.w.named(operand)
        low = self.comparison(">=", operand, self.w.source(expression.low), (first, again))
        high = self.comparison("<=", operand, self.w.source(expression.high), (again, again))
        both = self.w.wrap(f"({low.text} and {high.text})", t.BOOLEAN, low, high, null=False)
        return self._negated(both, expression.negated)

    def _in(self, expression: e.In) -> Source:
        items = in_list(expression.operand, expression.items)
        common = coercion.common_type(items, self.w.typer.type_of)
        if common is not None:
            items = [coercion.converted(each, self.w.typer.type_of(each), common) for each in items]
        value, *others = (self.w.source(each) for each in items)
        if all(isinstance(each, e.Literal) and _is_hashable(each) for each in items[1:]):
            known = self.w.constant(
                frozenset(each.value for each in items[1:] if isinstance(each, e.Literal))
            )
            made = self.w.wrap(f"({value.text} in {known})", t.BOOLEAN, value, null=False)
            return self._negated(made, expression.negated)
        listed = "".join(f"{each.text}, " for each in others)
        text = f"{self.w.constant(operators.matches_any)}({value.text}, ({listed}))"
        return self._negated(self.w.wrap(text, t.BOOLEAN, value, *others, null=False), expression.negated)

    def _like(self, expression: e.Like) -> Source:
        value, pattern = self.w.source(expression.operand), self.w.source(expression.pattern)
        if isinstance(expression.pattern, e.Literal) and isinstance(expression.pattern.value, str):
            matcher = operators.like_matcher(expression.pattern.value, expression.escape)
            text = f"{self.w.constant(matcher)}({value.text})"
        else:
            text = f"{self.w.constant(operators.like)}({value.text}, {pattern.text}, {expression.escape!r})"
        return self._negated(
            self.w.wrap(text, t.BOOLEAN, value, pattern, null=False, fails=True), expression.negated
        )

    def case(self, expression: e.Case) -> Source:
        type_ = self.w.typer.type_of(expression)
        if expression.operand is None:
            text, pieces = self._branches(expression, None)
            return self.w.wrap(text, type_, *pieces)
        operand = self.w.source(expression.operand)
        if operand.is_name:
            text, pieces = self._branches(expression, operand)
            return self.w.wrap(text, type_, operand, *pieces)
        name = self.w.temporary()
        self.w.variables[name] = name  # it is computed once, and stands in all comparisons
        text, pieces = self._branches(expression, replace(operand, text=name, is_name=True))
        del self.w.variables[name]
        return self.w.wrap(f"(lambda {name}: {text})({operand.text})", type_, operand, *pieces)

    def _branches(self, expression: e.Case, operand: Source | None) -> tuple[str, list[Source]]:
        texts: list[str] = []
        pieces: list[Source] = []
        for condition, result in expression.branches:
            if operand is None:
                test = self._condition(condition)
            else:
                test = self.comparison("=", operand, self.w.source(condition))
            value = self.w.source(result)
            texts.append(f"{value.text} if {test.text} else ")
            pieces += [test, value]
        default = (
            Source("None", None) if expression.otherwise is None else self.w.source(expression.otherwise)
        )
        return "(" + "".join(texts) + default.text + ")", [*pieces, default]


def _is_hashable(literal: e.Literal) -> bool:
    return literal.type is not None and literal.type.kind not in (Kind.ARRAY, Kind.MAP, Kind.STRUCT)


def _distinct(left: Any, right: Any, differ: Callable[[Any, Any], bool]) -> bool:
    if left is None or right is None:
        return (left is None) != (right is None)
    return differ(left, right)


def _not_distinct(left: Any, right: Any, equal: Callable[[Any, Any], bool]) -> bool:
    if left is None or right is None:
        return (left is None) == (right is None)
    return equal(left, right)
