"""What a program does, as text and as a drawing."""

from __future__ import annotations

from typing import Final

from penstock.streams.kernel.description import describe
from penstock.streams.library.failures import unknown
from penstock.streams.library.program import Program
from penstock.streams.plan.explain import as_drawing, as_text

FORMS: Final = ("text", "drawing", "topology")


def explained(program: Program, form: str, guarantee: str) -> str:
    if form not in FORMS:
        raise unknown("form of an explanation", form, FORMS)
    plan = program.plan()
    if form == "drawing":
        return as_drawing(plan)
    if form == "topology":
        return describe(plan)
    names = {node.name for node in plan.nodes()}
    lines = [
        as_text(plan).rstrip("\n"),
        "",
        f"Runs as long tasks on Spark: record by record, {guarantee.replace('_', ' ')}.",
    ]
    called = {name: function for name, function in program.notes.items() if name in names}
    if called:
        lines.append(
            "Functions of the program stand in these steps. Columns would do the same faster, and say what they do:"
        )
        lines += [f"  {name}: {function}" for name, function in called.items()]
    return "\n".join(lines) + "\n"
