"""Functions in Python that statements bring along: what they may say, and what becomes of calls that go wrong."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.functions.definition import Definition, definition_of
from penstock.sql.functions.hosts import HOSTS, MAX_IDLE
from penstock.sql.functions.results import as_declared
from penstock.sql.parsing.parser import parse, parse_expression
from penstock.sql.parsing.statements import CreateFunction
from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.functions.scope import in_scope
from penstock.streams.functions.typing import type_of
from penstock.streams.kernel.compiling import evaluate
from penstock.streams.kernel.operators.user_aggregates import ProgramFailed
from penstock.streams.plan import types as t
from penstock.streams.plan.types import SqlType


def defined(text: str, timeout_ms: int = 20_000) -> Definition:
    (statement,) = parse(text)
    assert isinstance(statement, CreateFunction)
    return definition_of(statement, timeout_ms)


def scalar(program: str, parameters: str = "X INT", returns: str = "INT", **more: Any) -> Definition:
    return defined(
        f"CREATE FUNCTION F({parameters}) RETURNS {returns} LANGUAGE PYTHON AS $${program}$$;", **more
    )


def value(definition: Definition, expression: str) -> Any:
    with in_scope([definition]):
        return evaluate(parse_expression(expression))


def test_a_program_is_an_expression_or_defines_the_function() -> None:
    assert value(scalar(" x * 2 "), "F(21)") == 42
    program = """
        import math
        def f(x):
            return math.factorial(x)
    """
    assert value(scalar(program, returns="BIGINT"), "f(6) + 1") == 721
    assert value(scalar("None if x is None else x"), "F(CAST(NULL AS INT))") is None


def test_arguments_are_cast_as_for_built_in_functions_and_no_further() -> None:
    definition = scalar("x / 2", "X DOUBLE", "DOUBLE")
    assert value(definition, "F(3)") == 1.5
    with in_scope([definition]):
        assert type_of(parse_expression("F(3)"), lambda _: None) == t.DOUBLE
        with pytest.raises(TypeRefused, match=r"Function 'f' does not accept parameters \(STRING\)"):
            type_of(parse_expression("F('3')"), lambda _: None)
    with pytest.raises(TypeRefused, match="Can't find any functions with the name 'F'"):
        type_of(parse_expression("F(3)"), lambda _: None)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("1 / x", r"The function F has failed: ZeroDivisionError: division by zero \(line 2\)"),
        ("'text'", r"The function F has failed: it gives 'text' \(str\), and INTEGER is declared"),
        ("2 ** 40", "INTEGER is declared"),
        ("object()", "which is no value of SQL"),
        ("(lambda: 0)", "PicklingError|AttributeError"),
        ("__import__('os')._exit(3)", "The function F has ended its process"),
        ("exit()", "SystemExit"),
    ],
)
def test_what_goes_wrong_in_a_program_is_told_by_the_functions_name(program: str, told: str) -> None:
    definition = scalar(program)
    for _ in range(2):  # the next call is as good as the first
        with pytest.raises(FunctionFailed, match=told):
            value(definition, "F(0)")


def test_a_call_that_does_not_end_is_given_up() -> None:
    endless = scalar("def f(x):\n  while not x: pass\n  return x", timeout_ms=200)
    with pytest.raises(FunctionFailed, match="The function F was given up: it did not end within 200 ms"):
        value(endless, "F(0)")
    patient = Definition(**{**vars(endless), "timeout_ms": 20_000})
    assert value(patient, "F(7)") == 7


def test_an_object_of_a_program_runs_nothing_here() -> None:
    program = """
    class Trap:
        def __reduce__(self):
            return __import__("os").system, ("exit 1",)
    def f(x):
        return Trap()
    """
    with pytest.raises(FunctionFailed, match=r"an object of (posix|os)\.system"):
        value(scalar(program), "F(0)")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CREATE FUNCTION F(X INT) RETURNS INT LANGUAGE JAVA AS $$x$$;", "written in PYTHON, and not in JAVA"),
        ("CREATE FUNCTION F(X INT) RETURNS INT LANGUAGE PYTHON AS $$ $$;", "is empty"),
        ("CREATE FUNCTION F(X INT) RETURNS INT LANGUAGE PYTHON AS $$def f(x):\n  return x x$$;", "no Python in line 2"),
        ("CREATE FUNCTION F(X INT) RETURNS INT LANGUAGE PYTHON AS $$def g(x):\n  return x$$;", r"or define f\(x\)"),
        ("CREATE FUNCTION F(X INT, x INT) RETURNS INT LANGUAGE PYTHON AS $$x$$;", "two parameters with the name X"),
        ("CREATE FUNCTION F(`a b` INT) RETURNS INT LANGUAGE PYTHON AS $$1$$;", "cannot be a name in Python"),
        ("CREATE AGGREGATE FUNCTION F() RETURNS INT LANGUAGE PYTHON AS $$1$$;", "needs a parameter"),
        ("CREATE AGGREGATE FUNCTION F(X INT) RETURNS INT LANGUAGE PYTHON AS $$x$$;", r"must define add\(state, x\)"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_function_is_refused(text: str, told: str) -> None:
    with pytest.raises(StatementRefused, match=told):
        defined(text)


def test_a_program_that_cannot_be_loaded_is_refused_when_it_is_made() -> None:
    program = "import no_such_module\ndef f(x):\n    return x"
    with pytest.raises(StatementRefused, match=r"cannot be loaded: ModuleNotFoundError.* \(line 1\)"):
        scalar(program).check()


def test_an_aggregate_keeps_a_state_that_its_program_gives() -> None:
    program = """
        def initial(): return [0, 0]
        def add(state, x): return [state[0] + x, state[1] + 1]
        def remove(state, x): return [state[0] - x, state[1] - 1]
        def merge(a, b): return [a[0] + b[0], a[1] + b[1]]
        def result(state): return state[0] / state[1] if state[1] else None
    """
    mean = defined(f"CREATE AGGREGATE FUNCTION MEAN(X INT) RETURNS DOUBLE LANGUAGE PYTHON AS $${program}$$;")
    (overload,) = mean.declared().overloads
    made = overload.make(None)
    state = made.add(made.add(made.initial(), 3), 6)
    assert (made.result(state), made.result(made.initial())) == (4.5, None)
    assert made.result(made.remove(state, 3)) == 6
    assert made.result(made.merge(state, made.add(made.initial(), 0))) == 3
    assert mean.declared().has_undo
    simple = defined(
        "CREATE AGGREGATE FUNCTION S(X INT) RETURNS INT LANGUAGE PYTHON AS $$def add(s, x): return (s or 0) + x$$;"
    )
    made = simple.declared().overloads[0].make(None)
    assert not simple.declared().has_undo
    with pytest.raises(ProgramFailed, match="The aggregate S has no merge"):
        made.merge(1, 2)


@pytest.mark.parametrize(
    ("given", "type_", "expected"),
    [
        (3, t.DOUBLE, 3.0),
        (Decimal("1.005"), t.decimal(4, 2), Decimal("1.00")),
        ([1, None], t.array(t.BIGINT), [1, None]),
        ({"a": 1}, t.struct(("A", t.INTEGER), ("B", t.STRING)), {"A": 1, "B": None}),
        ({"k": 1}, t.map_of(t.STRING, t.INTEGER), {"k": 1}),
    ],
)
def test_results_become_values_of_the_declared_type(given: Any, type_: SqlType, expected: Any) -> None:
    assert as_declared(given, type_) == expected


@pytest.mark.parametrize(
    ("given", "type_"),
    [
        (True, t.INTEGER),
        (1, t.STRING),
        (1.5, t.BIGINT),
        (Decimal(1000), t.decimal(4, 2)),
        (["a"], t.array(t.INTEGER)),
    ],
)
def test_results_of_another_type_are_refused(given: Any, type_: SqlType) -> None:
    with pytest.raises(FunctionFailed, match="is declared"):
        as_declared(given, type_)


def test_processes_that_nobody_uses_are_few() -> None:
    for number in range(MAX_IDLE + 3):
        assert value(scalar(f"x + {number}"), "F(1)") == number + 1
    assert len(HOSTS._idle) == MAX_IDLE
    HOSTS.close()
    assert value(scalar("x + 1"), "F(1)") == 2
