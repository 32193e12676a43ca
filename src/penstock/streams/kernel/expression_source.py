"""The Python source of expressions.

Every expression becomes one Python expression. `a` and `b` are a row's key and value, `row` the row, `t1` … hold what is needed
twice. Each piece knows its type, whether it can be NULL and whether it can fail, so that checks stand only where they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.streams.functions import casts, coercion, decimals, operators, tables
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.signatures import ParameterType, applied
from penstock.streams.functions.typing import ResolvedCall, Typer, arithmetic_type
from penstock.streams.kernel.condition_source import ConditionWriter
from penstock.streams.kernel.source_pieces import Source
from penstock.streams.plan import expressions as e
from penstock.streams.plan import types as t
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.types import Kind, SqlType

MAX_DEPTH: Final = 40  # Python's parser takes some 200 brackets, one in another
_PSEUDO: Final = {
    "ROWTIME": "row[2]",
    "WINDOWSTART": "(None if row[4] is None else row[4][0])",
    "WINDOWEND": "(None if row[4] is None else row[4][1])",
    "ROWPARTITION": "row[6]",
    "ROWOFFSET": "row[7]",
}


@dataclass(slots=True)
class SourceWriter:
    """`variables` has the Python names of the variables of the lambdas around."""

    schema: Schema
    typer: Typer
    variables: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    helpers: list[str] = field(default_factory=list)
    _by_value: dict[int, str] = field(default_factory=dict)
    _temporary_count: int = 0
    conditions: ConditionWriter = field(init=False)

    def __post_init__(self) -> None:
        self.conditions = ConditionWriter(self)

    def prologue(self) -> list[str]:
        key = self.constant((None,) * len(self.schema.key))
        value = self.constant((None,) * len(self.schema.value))
        return [
            "    a = row[0]",
            f"    if a is None: a = {key}",
            "    b = row[1]",
            f"    if b is None: b = {value}",
        ]

    def constant(self, value: Any) -> str:
        """The name under which the compiled code knows a value."""
        name = self._by_value.get(id(value))
        if name is None:
            name = f"c{len(self.constants)}"
            self.constants[name] = value  # it keeps the value alive, so its id stays its own
            self._by_value[id(value)] = name
        return name

    def source(self, expression: e.Expression) -> Source:
        return self._bounded(self._source(expression))

    def _bounded(self, made: Source) -> Source:
        """Python's parser takes only so many brackets in one another: what has more goes into a function of its own."""
        if made.depth <= MAX_DEPTH:
            return made
        name, arguments = self._helper_name()
        self.helpers.append(f"def {name}{arguments}:\n    return {made.text}\n")
        return replace(made, text=f"{name}{arguments}", is_name=False, depth=1)

    def _helper_name(self) -> tuple[str, str]:
        variables = "".join(f", {each}" for each in self.variables.values())
        return f"h{len(self.helpers)}", f"(row, a, b{variables})"

    def guarded(self, expression: e.Expression) -> Source:
        """A part whose failure is its own: it is NULL then, and what is around it goes on."""
        made = self._source(expression)
        return self._guard(made, expression) if made.can_fail else self._bounded(made)

    def _guard(self, made: Source, expression: e.Expression) -> Source:
        name, arguments = self._helper_name()
        self.helpers.append(
            f"def {name}{arguments}:\n"
            f"    try:\n        return {made.text}\n"
            f"    except Exception as error:\n        fail({self.constant(expression)}, row, error)\n        return None\n"
        )
        return Source(f"{name}{arguments}", made.type, depth=1)

    def unguarded(self, expression: e.Expression) -> Source:
        """For the outermost expression, whose failure is looked after around it."""
        if isinstance(expression, e.Cast):
            self.typer.type_of(expression)
            return self.cast(self.source(expression.operand), expression.type)
        return self.source(expression)

    def _source(self, expression: e.Expression) -> Source:
        match expression:
            case e.Literal():
                return self._literal(expression)
            case e.ColumnRef(name=name):
                return self._column(expression, name)
            case e.LambdaVariable(name=name):
                return Source(self.variables[name], self.typer.type_of(expression), is_name=True)
            case e.Arithmetic():
                return self._arithmetic(expression)
            case e.Negative():
                return self._negative(expression)
            case e.Comparison(operator=operator, left=left, right=right):
                self.typer.type_of(expression)
                return self.conditions.comparison(operator, self.source(left), self.source(right))
            case e.Cast(operand=operand, type=type_):
                self.typer.type_of(expression)
                made = self.cast(self.source(operand), type_)
                return self._guard(made, expression) if made.can_fail else made
            case e.Call():
                return self._call(expression)
            case e.PythonCall():
                return self._python_call(expression)
            case e.Case():
                return self.conditions.case(expression)
            case e.FieldOf() | e.Subscript() | e.MakeArray() | e.MakeMap() | e.MakeStruct():
                return self._structured(expression)
            case _:
                self.typer.type_of(expression)
                return self.conditions.predicate(expression)

    # ---------------------------------------------------------------- pieces

    def wrap(
        self, text: str, type_: SqlType | None, *parts: Source, null: bool = True, fails: bool = False
    ) -> Source:
        deepest = max((each.depth for each in parts), default=0)
        return Source(text, type_, null, fails or any(each.can_fail for each in parts), False, deepest + 1)

    def temporary(self) -> str:
        self._temporary_count += 1
        return f"t{self._temporary_count}"

    def named(self, piece: Source) -> tuple[str, str]:
        """How a piece stands where it is computed, and how where it is used again."""
        if piece.is_name:
            return piece.text, piece.text
        name = self.temporary()
        return f"({name} := {piece.text})", name

    def _literal(self, expression: e.Literal) -> Source:
        value, type_ = expression.value, expression.type
        if value is None:
            return Source("None", type_, is_name=True)
        if isinstance(value, bool) or (isinstance(value, int | str | bytes) and len(repr(value)) < 200):
            text = f"({value!r})" if isinstance(value, int) and value < 0 else repr(value)
        else:
            text = self.constant(value)
        return Source(text, type_, can_be_null=False, is_name=True)

    def _column(self, expression: e.Expression, name: str) -> Source:
        type_ = self.typer.type_of(expression)
        for letter, columns in (("a", self.schema.key), ("b", self.schema.value)):
            for at, column in enumerate(columns):
                if column.name == name:
                    return Source(f"{letter}[{at}]", type_, is_name=True)
        return Source(_PSEUDO[name], type_, can_be_null=name.startswith("WINDOW"), is_name=True)

    # ---------------------------------------------------------------- numbers

    def _arithmetic(self, expression: e.Arithmetic) -> Source:
        self.typer.type_of(expression)
        left, right = self.source(expression.left), self.source(expression.right)
        type_ = arithmetic_type(expression.operator, left.type, right.type)
        operator = expression.operator
        fails = left.can_be_null or right.can_be_null
        if type_.kind is Kind.DECIMAL:
            assert left.type is not None
            assert right.type is not None
            left, right = (self.cast(each, decimals.as_decimal(each.type or type_)) for each in (left, right))
            apply = self.constant(operators.decimal_operator(operator, type_))
            return self.wrap(
                f"{apply}({left.text}, {right.text})", type_, left, right, null=False, fails=True
            )
        if type_.kind is Kind.DOUBLE:
            left, right = (self._as_double(each) for each in (left, right))
            text = self._double_arithmetic(operator, left, right)
            return self.wrap(text, type_, left, right, null=False, fails=fails)
        if operator in "/%":
            apply = self.constant(operators.divide_whole if operator == "/" else operators.remainder_whole)
            text = self._wrapped(f"{apply}({left.text}, {right.text})", type_)
            return self.wrap(text, type_, left, right, null=False, fails=True)
        text = f"({left.text} {operator} {right.text})"
        if type_.kind is not Kind.STRING:
            text = self._wrapped(text, type_)
        return self.wrap(text, type_, left, right, null=False, fails=fails)

    def _as_double(self, piece: Source) -> Source:
        return piece if piece.type == t.DOUBLE else self.cast(piece, t.DOUBLE)

    def _double_arithmetic(self, operator: str, left: Source, right: Source) -> str:
        if operator in "/%":
            apply = self.constant(operators.divide_double if operator == "/" else operators.remainder_double)
            return f"{apply}({left.text}, {right.text})"
        return f"({left.text} {operator} {right.text})"

    def _wrapped(self, text: str, type_: SqlType) -> str:
        """As Java's int and long overflow."""
        half, mask = (0x80000000, 0xFFFFFFFF) if type_.kind is Kind.INTEGER else (1 << 63, (1 << 64) - 1)
        return f"((({text} + {half}) & {mask}) - {half})"

    def _negative(self, expression: e.Negative) -> Source:
        type_ = self.typer.type_of(expression)
        operand = self.source(expression.operand)
        assert type_ is not None
        text = f"({expression.sign}{operand.text})"
        if type_.kind in (Kind.INTEGER, Kind.BIGINT) and expression.sign == "-":
            text = self._wrapped(text, type_)
        if type_.kind is Kind.DECIMAL:
            text = (
                f"{self.constant(decimals.negated)}({operand.text})"
                if expression.sign == "-"
                else operand.text
            )
            return self.wrap(text, type_, operand)
        return self.wrap(text, type_, operand, null=False, fails=operand.can_be_null)

    # ---------------------------------------------------------------- casts

    def cast(self, piece: Source, wanted: SqlType) -> Source:
        if piece.type is None or casts.is_identity(piece.type, wanted):
            return replace(piece, type=wanted)
        convert = casts.caster(piece.type, wanted)
        apply = self.constant(convert)
        if not piece.can_be_null:
            return self.wrap(f"{apply}({piece.text})", wanted, piece, null=False, fails=True)
        first, again = self.named(piece)
        return self.wrap(f"(None if {first} is None else {apply}({again}))", wanted, piece, fails=True)

    # ---------------------------------------------------------------- arrays, maps, structs

    def _structured(self, expression: e.Expression) -> Source:
        type_ = self.typer.type_of(expression)
        match expression:
            case e.FieldOf(operand=operand, name=name):
                base = self.source(operand)
                first, again = self.named(base)
                return self.wrap(f"(None if {first} is None else {again}.get({name!r}))", type_, base)
            case e.Subscript(operand=operand, index=index):
                base, place = self.source(operand), self.source(index)
                first, again = self.named(base)
                if base.type is not None and base.type.kind is Kind.MAP:
                    text = f"(None if {first} is None else {again}.get({place.text}))"
                    return self.wrap(text, type_, base, place)
                apply = self.constant(operators.element)
                text = f"(None if {first} is None else {apply}({again}, {place.text}))"
                return self.wrap(text, type_, base, place, fails=place.can_be_null)
            case e.MakeArray(items=items):
                pieces = self._converted(list(items))
                return self.wrap(
                    "[" + ", ".join(each.text for each in pieces) + "]", type_, *pieces, null=False
                )
            case e.MakeMap(entries=entries):
                keys = self._converted([key for key, _ in entries])
                values = self._converted([value for _, value in entries])
                pairs = (f"{key.text}: {value.text}" for key, value in zip(keys, values, strict=True))
                return self.wrap("{" + ", ".join(pairs) + "}", type_, *keys, *values, null=False)
            case e.MakeStruct(fields=fields):
                made = [(name, self.guarded(value)) for name, value in fields]
                text = "{" + ", ".join(f"{name!r}: {piece.text}" for name, piece in made) + "}"
                return self.wrap(text, type_, *(piece for _, piece in made), null=False)
        raise TypeRefused(f"{expression} cannot be computed.", expression.place)

    def _converted(self, items: list[e.Expression]) -> list[Source]:
        common = coercion.common_type(items, self.typer.type_of)
        if common is None:
            return [self.guarded(each) for each in items]
        return [self.guarded(coercion.converted(each, self.typer.type_of(each), common)) for each in items]

    # ---------------------------------------------------------------- calls

    def _call(self, call: e.Call) -> Source:
        if tables.is_table_function(call.name):
            return self._table_call(call)
        resolved = self.typer.resolve(call)
        overload = resolved.overload
        arguments = [self._argument(call, resolved, at) for at in range(len(call.arguments))]
        apply = self.constant(overload.function_for(resolved.arguments, resolved.type))
        if not overload.is_strict:
            text = f"{apply}({', '.join(each.text for each in arguments)})"
            return self.wrap(text, resolved.type, *arguments, fails=True)
        checks, used = [], []
        for piece in arguments:
            if not piece.can_be_null:
                used.append(piece.text)
                continue
            first, again = self.named(piece)
            checks.append(f"{first} is None")
            used.append(again)
        text = f"{apply}({', '.join(used)})"
        if checks:
            text = f"(None if {' or '.join(checks)} else {text})"
        return self.wrap(text, resolved.type, *arguments, fails=True)

    def _table_call(self, call: e.Call) -> Source:
        """The list whose elements become rows."""
        resolved = tables.resolve(call, self.typer.type_of)
        arguments = [self.source(each) for each in call.arguments]
        text = f"{self.constant(resolved.run)}({', '.join(each.text for each in arguments)})"
        return self.wrap(text, resolved.type, *arguments, fails=True)

    def _argument(self, call: e.Call, resolved: ResolvedCall, at: int) -> Source:
        expression = call.arguments[at]
        parameter = (resolved.overload.signature.for_count(len(call.arguments)) or ())[at].type
        match expression:
            case e.TimeUnit(unit=unit):
                return Source(repr(unit), None, can_be_null=False, is_name=True)
            case e.Lambda():
                return self._lambda(expression, resolved, at)
        is_part = isinstance(expression, e.Call | e.FieldOf)
        piece = self.guarded(expression) if is_part else self.source(expression)
        wanted = _wanted(parameter, piece.type)
        if wanted is None:
            return piece
        made = self.cast(piece, wanted)
        return self._guard(made, expression) if made.can_fail else made

    def _lambda(self, expression: e.Lambda, resolved: ResolvedCall, at: int) -> Source:
        outer_typer, outer_names = self.typer, dict(self.variables)
        names = [self.temporary() for _ in expression.parameters]
        self.typer = Typer(outer_typer.columns, resolved.variables[at])
        self.variables = {**outer_names, **dict(zip(expression.parameters, names, strict=True))}
        body = self.source(expression.body)
        self.typer, self.variables = outer_typer, outer_names
        made = self.wrap(f"(lambda {', '.join(names)}: {body.text})", None, body, null=False)
        return replace(made, is_name=True, can_fail=False)

    def _python_call(self, call: e.PythonCall) -> Source:
        arguments = [self.source(each) for each in call.arguments]
        text = f"{self.constant(call.function)}({', '.join(each.text for each in arguments)})"
        return self.wrap(text, call.type, *arguments, fails=True)


def _wanted(parameter: ParameterType, given: SqlType | None) -> SqlType | None:
    """What an argument is cast to before the call."""
    if given is None or parameter.has_generics or parameter.name in ("ANY", "UNIT", "LAMBDA"):
        return None
    if parameter.name == given.kind.value and parameter.name not in ("ARRAY", "MAP"):
        return None
    if parameter.name == "DECIMAL":
        return decimals.as_decimal(given)
    try:
        wanted = applied(parameter, {})
    except TypeRefused:
        return None  # ARRAY<DECIMAL>: of any precision
    return None if wanted == given else wanted
