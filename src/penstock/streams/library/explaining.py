"""What a program does, as text and as a drawing."""

from __future__ import annotations

from typing import Final

from penstock.streams.kernel.description import describe
from penstock.streams.kernel.topology import cut
from penstock.streams.library.failures import unknown
from penstock.streams.library.program import Program
from penstock.streams.plan.explain import as_drawing, as_text
from penstock.streams.plan.nodes import Plan, PythonProcessor, PythonStep

FORMS: Final = ("text", "drawing", "topology")


def explained(program: Program, form: str, guarantee: str) -> str:
    if form not in FORMS:
        raise unknown("form of an explanation", form, FORMS)
    plan = program.plan()
    tier = tier_of(plan, guarantee)
    if form == "drawing":
        return as_drawing(plan) + f'    tier>"{tier}"]\n'
    if form == "topology":
        return describe(plan)
    names = {node.name for node in plan.nodes()}
    lines = [
        as_text(plan).rstrip("\n"),
        "",
        f"Tier: {tier}.",
    ]
    called = {name: function for name, function in program.notes.items() if name in names}
    if called:
        lines.append(
            "Functions of the program stand in these steps. Columns would do the same faster, and say what they do:"
        )
        lines += [f"  {name}: {function}" for name, function in called.items()]
    return "\n".join(lines) + "\n"


def tier_of(plan: Plan, guarantee: str) -> str:
    """Where it runs, and why there, in one line. There is one tier: docs/decisions/0021 and 0023 have the measurements."""
    if any(part.stores for part in cut(plan)):
        reason = "its state is in the tasks' memory, and each change of it goes out at once"
    elif any(isinstance(node, (PythonStep, PythonProcessor)) for node in plan.nodes()):
        reason = "functions of the program are called row by row"
    else:
        reason = "its expressions mean what ksqlDB's mean, which Spark's columns do not"
    return f"long tasks on Spark, record by record, {guarantee.replace('_', ' ')}, because {reason}"
