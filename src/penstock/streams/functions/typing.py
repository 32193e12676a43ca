"""The type of an expression, by the types of its columns and the signatures of its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from penstock.streams.functions import aggregates, casts, catalog, coercion, decimals, tables
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.registry import Overload
from penstock.streams.functions.signatures import Argument, LambdaArgument, UnitArgument, applied, learn
from penstock.streams.plan import expressions as e
from penstock.streams.plan import types as t
from penstock.streams.plan.types import Kind, SqlType

__all__ = ["Columns", "ResolvedCall", "TypeRefused", "Typer", "type_of"]

Columns = Callable[[str], SqlType | None]
_OPERATORS: Final = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "!=": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
    "IS NOT DISTINCT FROM": "IS_NOT_DISTINCT_FROM",
}
_NESTED: Final = (Kind.ARRAY, Kind.MAP, Kind.STRUCT)
_EQUALITIES: Final = ("=", "<>", "!=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_EMPTY_ISSUE: Final = "(see https://github.com/confluentinc/ksql/issues/4239)."


def type_of(expression: e.Expression, types: Columns) -> SqlType | None:
    """None: it is NULL and has no type. `types` gives the type of a column, None for a name that is none."""
    try:
        return Typer(types).type_of(expression)
    except RecursionError:
        raise TypeRefused("The expression is nested too deeply.", expression.place) from None


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """`variables` has for each argument the types that lambda variables have inside it."""

    overload: Overload
    arguments: tuple[Argument, ...]
    variables: tuple[Mapping[str, SqlType], ...]
    type: SqlType


@dataclass(slots=True)
class Typer:
    """Types of expressions over one set of columns. `variables` are those of the lambdas around."""

    columns: Columns
    variables: Mapping[str, SqlType] = field(default_factory=dict)
    _known: dict[int, tuple[e.Expression, SqlType | None]] = field(
        default_factory=dict
    )  # by id of what they keep
    _calls: dict[int, tuple[e.Call, ResolvedCall]] = field(default_factory=dict)

    def type_of(self, expression: e.Expression) -> SqlType | None:
        if id(expression) not in self._known:
            try:
                self._known[id(expression)] = (expression, self._type_of(expression))
            except TypeRefused as refused:
                if refused.place is None:
                    refused.place = expression.place
                raise
        return self._known[id(expression)][1]

    def _type_of(self, expression: e.Expression) -> SqlType | None:
        match expression:
            case e.Literal(type=type_) | e.PythonCall(type=type_):
                return type_
            case e.ColumnRef(name=name):
                found = self.columns(name)
                if found is None:
                    raise TypeRefused(f"Unknown column {expression}.")
                return found
            case e.LambdaVariable(name=name):
                if name not in self.variables:
                    raise TypeRefused(f"Can't find lambda argument {name}.")
                return self.variables[name]
            case e.Negative(operand=operand):
                return self._negative(operand)
            case e.Arithmetic():
                return self._arithmetic(expression)
            case e.Cast():
                return self._cast(expression)
            case e.Call():
                return self._call(expression)
            case e.Case():
                return self._case(expression)
            case e.FieldOf() | e.Subscript() | e.MakeArray() | e.MakeMap() | e.MakeStruct():
                return self._structured(expression)
            case e.Comparison():
                self._check_predicate(expression)
                return t.BOOLEAN
            case _:
                with _late():
                    self._check_predicate(expression)
                return t.BOOLEAN

    def _negative(self, operand: e.Expression) -> SqlType:
        found = self.type_of(operand)
        if found is None or not coercion.is_number(found):
            raise TypeRefused(f"Unsupported arithmetic type. {'NULL' if found is None else found.kind.value}")
        return found

    def _arithmetic(self, expression: e.Arithmetic) -> SqlType:
        left, right = self.type_of(expression.left), self.type_of(expression.right)
        try:
            return arithmetic_type(expression.operator, left, right)
        except TypeRefused as refused:
            raise TypeRefused(f"Error processing expression: {expression}. {refused.message}") from None

    def _cast(self, expression: e.Cast) -> SqlType:
        given = self.type_of(expression.operand)
        if given is not None:
            with _late():
                casts.caster(given, expression.type)
        return expression.type

    def _call(self, call: e.Call) -> SqlType:
        if aggregates.is_aggregate(call.name):
            return aggregates.resolve(call, self.type_of).type
        if tables.is_table_function(call.name):
            return tables.resolve(call, self.type_of).type
        return self.resolve(call).type

    def resolve(self, call: e.Call) -> ResolvedCall:
        """The overload that a call means."""
        if id(call) not in self._calls:
            self._calls[id(call)] = (call, self._resolve(call))
        return self._calls[id(call)][1]

    def _resolve(self, call: e.Call) -> ResolvedCall:
        function = catalog.find(call.name)
        if function is None:
            raise TypeRefused(f"Can't find any functions with the name '{call.name}'", call.place)
        arguments = tuple(self._first_pass(each) for each in call.arguments if not isinstance(each, e.Star))
        overload = function.choose(arguments)
        if any(isinstance(each, e.Lambda) for each in call.arguments):
            return self._with_lambdas(call, overload, arguments)
        variables = (self.variables,) * len(arguments)
        return ResolvedCall(overload, arguments, variables, overload.type_for(arguments))

    def _first_pass(self, argument: e.Expression) -> Argument:
        match argument:
            case e.Lambda(parameters=parameters):
                return LambdaArgument(len(parameters))
            case e.TimeUnit():
                return UnitArgument()
            case _:
                return self.type_of(argument)

    def _with_lambdas(self, call: e.Call, overload: Overload, first: tuple[Argument, ...]) -> ResolvedCall:
        generics: dict[str, SqlType] = {}
        arguments: list[Argument] = []
        variables: list[Mapping[str, SqlType]] = []
        parameters = overload.signature.for_count(len(first)) or ()
        for expression, parameter, argument in zip(call.arguments, parameters, first, strict=True):
            inside = self.variables
            if isinstance(expression, e.Lambda):
                if argument is None or parameter.type.name != "LAMBDA":
                    raise TypeRefused(f"Function '{call.name}' takes no lambda here.", expression.place)
                inputs = tuple(applied(each, generics) for each in parameter.type.inner[:-1])
                inside = self._inside(expression, inputs)
                result = Typer(self.columns, inside).type_of(expression.body)
                argument = LambdaArgument(len(inputs), inputs, result)
            if argument is not None and parameter.type.has_generics:
                problem = learn(parameter.type, argument, generics)
                if problem is not None:
                    raise TypeRefused(problem, expression.place)
            arguments.append(argument)
            variables.append(inside)
        return ResolvedCall(overload, tuple(arguments), tuple(variables), overload.type_for(tuple(arguments)))

    def _inside(self, expression: e.Lambda, inputs: tuple[SqlType, ...]) -> Mapping[str, SqlType]:
        """A name of a lambda around may be used again, for the same type."""
        for name, type_ in zip(expression.parameters, inputs, strict=True):
            old = self.variables.get(name, type_)
            if old != type_:
                raise TypeRefused(
                    f"Could not map type {type_} to lambda variable {name}, {name} was already mapped to {old}",
                    expression.place,
                )
        return {**self.variables, **dict(zip(expression.parameters, inputs, strict=True))}

    def _case(self, expression: e.Case) -> SqlType:
        found: SqlType | None = None
        for condition, result in expression.branches:
            if expression.operand is not None:
                self._check_comparison("=", expression.operand, condition)
            elif (type_ := self.type_of(condition)) is None or type_.kind is not Kind.BOOLEAN:
                shown = "NULL" if type_ is None else type_
                raise TypeRefused(f"WHEN operand type should be boolean.\nType for '{condition}' is {shown}")
            given = self.type_of(result)
            if found is not None and given is not None and found != given:
                raise TypeRefused(
                    "Invalid Case expression. Type for all 'THEN' clauses should be the same.\n"
                    f"THEN expression 'WHEN {condition} THEN {result}' has type: {given}.\n"
                    f"Previous THEN expression(s) type: {found}."
                )
            found = found or given
        default = None if expression.otherwise is None else self.type_of(expression.otherwise)
        if found is not None and default is not None and found != default:
            raise TypeRefused(
                "Invalid Case expression. Type for the default clause should be the same as for 'THEN' clauses.\n"
                f"THEN type: {found}.\nDEFAULT type: {default}."
            )
        if found is None and default is None:
            raise TypeRefused("Invalid Case expression. All case branches have NULL type")
        return found or default or t.STRING

    def _structured(self, expression: e.Expression) -> SqlType:
        match expression:
            case e.FieldOf(operand=operand, name=name):
                base = self.type_of(operand)
                if base is None or base.kind is not Kind.STRUCT:
                    raise TypeRefused(f"Expected STRUCT type, got: {base}")
                found = base.field(name)
                if found is None:
                    raise TypeRefused(f"Could not find field '{name}' in '{operand}'.")
                return found
            case e.Subscript():
                return self._subscript(expression)
            case e.MakeArray(items=items):
                return t.array(self._element(items, "Array", "an array", "elements", "value", "element"))
            case e.MakeMap(entries=entries):
                keys, values = [key for key, _ in entries], [value for _, value in entries]
                key = self._element(keys, "Map", "a map", "keys", "key", "key value pair")
                if key.kind in _NESTED:
                    raise TypeRefused(f"The key of a map cannot be {key}: {expression}")
                return t.map_of(
                    key, self._element(values, "Map", "a map", "values", "value", "key value pair")
                )
            case e.MakeStruct(fields=fields):
                return self._struct(fields)
        raise TypeRefused(f"{expression} has no type.")

    def _element(
        self,
        items: tuple[e.Expression, ...] | list[e.Expression],
        kind: str,
        what: str,
        parts: str,
        part: str,
        one: str,
    ) -> SqlType:
        if not items:
            raise TypeRefused(
                f"{kind} constructor cannot be empty. Please supply at least one {one} {_EMPTY_ISSUE}"
            )
        found = coercion.common_type(items, self.type_of)
        if found is None:
            raise TypeRefused(
                f"Cannot construct {what} with all NULL {parts} {_EMPTY_ISSUE} "
                f"As a workaround, you may cast a NULL {part} to the desired type."
            )
        return found

    def _struct(self, fields: tuple[tuple[str, e.Expression], ...]) -> SqlType:
        made: list[tuple[str, SqlType]] = []
        for name, value in fields:
            found = self.type_of(value)
            if found is None:
                raise TypeRefused(
                    f"The field '{name}' of a STRUCT is NULL and has no type. Cast it to the desired type."
                )
            if (twice := next((old for each, old in made if each == name), None)) is not None:
                raise TypeRefused(
                    f"Duplicate field names found in STRUCT: '`{name}` {twice}' and '`{name}` {found}'"
                )
            made.append((name, found))
        return t.struct(*made)

    def _subscript(self, expression: e.Subscript) -> SqlType:
        base = self.type_of(expression.operand)
        index = self.type_of(expression.index)
        if base is None or base.element is None:
            hint = ""
            if base is not None and base.kind is Kind.STRUCT:
                hint = f" Use the dereference operator for STRUCTS: {expression.operand}->{expression.index}"
            raise TypeRefused(f"Subscript expression ({expression}) do not apply to {base}.{hint}")
        if base.kind is Kind.ARRAY and index is not None and index.kind not in (Kind.INTEGER, Kind.BIGINT):
            raise TypeRefused(f"The index of an array is an INTEGER, not {index}: {expression}")
        if base.kind is Kind.MAP and index is not None and index.kind in _NESTED:
            raise TypeRefused(f"The key of this map is {base.key}, not {index}: {expression}")
        return base.element

    def _check_predicate(self, expression: e.Expression) -> None:
        match expression:
            case e.Comparison(operator=operator, left=left, right=right):
                self._check_comparison(operator, left, right)
            case e.Logical(left=left, right=right):
                self._check_boolean(left)
                self._check_boolean(right)
            case e.Not(operand=operand):
                self._check_boolean(operand)
            case e.IsNull(operand=operand):
                self.type_of(operand)
            case e.Between(operand=operand, low=low, high=high):
                self._check_comparison(">=", operand, low)
                self._check_comparison("<=", operand, high)
            case e.In(operand=operand, items=items):
                coercion.common_type(in_list(operand, items), self.type_of)
            case e.Like(operand=operand, pattern=pattern):
                self._check_text(operand)
                self._check_text(pattern)
            case _:
                raise TypeRefused(f"{expression} cannot stand here.")

    def _check_boolean(self, operand: e.Expression) -> None:
        found = self.type_of(operand)
        if found is not None and found.kind is not Kind.BOOLEAN:
            raise TypeRefused(f"AND, OR and NOT take BOOLEAN: {operand} is {found}.")

    def _check_text(self, operand: e.Expression) -> None:
        found = self.type_of(operand)
        if found is not None and found.kind is not Kind.STRING:
            raise TypeRefused(f"LIKE condition must be between strings: {operand} is {found}.")

    def _check_comparison(self, operator: str, left: e.Expression, right: e.Expression) -> None:
        one, other = self.type_of(left), self.type_of(right)
        if one is None or other is None:
            kinds = ["NULL" if each is None else each.kind.value for each in (one, other)]
            raise TypeRefused(
                f"Comparison with NULL not supported: {kinds[0]} {operator} {kinds[1]}\n"
                "Use 'IS NULL' or 'IS NOT NULL' instead."
            )
        if not _is_comparable(operator, one, other):
            raise TypeRefused(
                f"Cannot compare {left} ({one}) to {right} ({other}) with {_OPERATORS.get(operator, operator)}."
            )


@contextmanager
def _late() -> Iterator[None]:
    """ksqlDB sees these mistakes only when it compiles, and says "Invalid Select" or "Invalid Predicate" before them."""
    try:
        yield
    except TypeRefused as refused:
        refused.is_late = True
        raise


def in_list(operand: e.Expression, items: tuple[e.Expression, ...]) -> list[e.Expression]:
    """What IN compares: NULLs in the list never match."""
    return [operand, *(each for each in items if not (isinstance(each, e.Literal) and each.type is None))]


def arithmetic_type(operator: str, left: SqlType | None, right: SqlType | None) -> SqlType:
    if left is None or right is None:
        shown = ["null" if each is None else str(each) for each in (left, right)]
        raise TypeRefused(f"Arithmetic on types {shown[0]} and {shown[1]} are not supported.")
    if operator == "+" and left.kind is right.kind is Kind.STRING:
        return t.STRING
    if coercion.is_number(left) and coercion.is_number(right):
        wide = max(left, right, key=lambda each: coercion.NUMBERS.index(each.kind))
        if wide.kind is not Kind.DECIMAL:
            return wide
        return decimals.result_of(operator, decimals.as_decimal(left), decimals.as_decimal(right))
    raise TypeRefused(f"Unsupported arithmetic types. {left.kind.value} {right.kind.value}")


def _is_comparable(operator: str, left: SqlType, right: SqlType) -> bool:
    match left.kind:
        case kind if kind in coercion.NUMBERS:
            return coercion.is_number(right)
        case Kind.STRING:
            return right.kind is Kind.STRING or right.kind in coercion.TIMES
        case Kind.BOOLEAN | Kind.ARRAY | Kind.MAP | Kind.STRUCT:
            return right.kind is left.kind and operator in _EQUALITIES
        case Kind.DATE | Kind.TIMESTAMP:
            return right.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.STRING)
        case Kind.TIME:
            return right.kind in (Kind.TIME, Kind.STRING)
        case _:
            return right.kind is Kind.BYTES
