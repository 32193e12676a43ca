"""What a program says of itself, without running it: whether it is Python, and which functions it has."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from typing import Final

from penstock.sql.analysis.refusals import StatementRefused

OF_AGGREGATES: Final = ("initial", "add", "remove", "merge", "result")


def parts(kind: str, name: str, parameters: Sequence[str], source: str) -> tuple[str, ...]:
    """The functions of an aggregate; of the others nothing. StatementRefused with the program's line."""
    text = textwrap.dedent(source).strip("\n")
    if not text.strip():
        raise StatementRefused(f"The program of the function {name} is empty.")
    if kind != "AGGREGATE" and _is_expression(text, parameters):
        return ()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise StatementRefused(
            f"The program of the function {name} is no Python{where}: {getattr(error, 'msg', error)}"
        ) from None
    except RecursionError:
        raise StatementRefused(f"The program of the function {name} is nested too deeply.") from None
    defined = _defined(tree)
    if kind == "AGGREGATE":
        if "add" not in defined:
            raise StatementRefused(
                f"The program of the aggregate {name} must define add(state, {', '.join(parameters)}), which gives the new state."
            )
        return tuple(each for each in OF_AGGREGATES if each in defined)
    if not {name, name.lower()} & defined:
        raise StatementRefused(
            f"The program of the function {name} must be an expression, or define "
            f"{name.lower()}({', '.join(parameters)})."
        )
    return ()


def _is_expression(text: str, parameters: Sequence[str]) -> bool:
    try:
        ast.parse(f"lambda {', '.join(parameters)}: (\n{text}\n)", mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _defined(tree: ast.Module) -> set[str]:
    found = set()
    for each in tree.body:
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            found.add(each.name)
        elif isinstance(each, ast.Assign):
            found |= {target.id for target in each.targets if isinstance(target, ast.Name)}
        elif isinstance(each, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name) for alias in each.names}
    return found
