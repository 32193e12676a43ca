"""The calls of one Aggregate as four functions over the list of their states, written for them as source and compiled.

A loop over calls and arguments for every row costs as much as the calls.
"""

from __future__ import annotations

from typing import Any

from penstock.streams.functions.aggregates import aggregate_for
from penstock.streams.functions.typing import type_of
from penstock.streams.kernel.building import Building
from penstock.streams.kernel.compiling import column_types
from penstock.streams.kernel.operators.user_aggregates import UserAggregate
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import AggregateCall
from penstock.streams.plan.schema import Schema

Values = tuple[Any, ...]


class Calls:
    """`values(row)` are the arguments of all calls, then the carried columns, from place `carried` on.

    `add(states, values, row)` and `remove(…)` give new states, `merge(states, states, key)` those of both; `result(states)` the
    values of the calls."""

    def __init__(self, node: nodes.Aggregate, building: Building) -> None:
        schema = node.input.schema
        arguments = tuple(argument for call in node.calls for argument in call.arguments)
        self.carried = len(arguments)
        self.values = building.items(node, arguments + node.carried, schema)
        properties = dict(building.properties)
        programs = [_program(call, schema, properties) for call in node.calls]
        self._programs = programs
        names: dict[str, Any] = {f"p{at}": program for at, program in enumerate(programs)}
        adds, removes, merges, results, place = [], [], [], [], 0
        for at, (call, program) in enumerate(zip(node.calls, programs, strict=True)):
            given = "".join(f", v[{number}]" for number in range(place, place + len(call.arguments)))
            place += len(call.arguments)
            if isinstance(program, UserAggregate):
                given, both = ", row", f"p{at}.merge(a[{at}], b[{at}], key)"
            else:
                both = f"p{at}.merge(a[{at}], b[{at}])"
            names[f"add{at}"], names[f"remove{at}"] = program.add, program.remove
            adds.append(f"add{at}(s[{at}]{given})")
            removes.append(f"remove{at}(s[{at}]{given})")
            merges.append(both)
            is_state = getattr(program, "finish", program) is None  # the state is the result
            results.append(f"s[{at}]" if is_state else f"p{at}.result(s[{at}])")
        source = (
            f"def add(s, v, row): return [{', '.join(adds)}]\n"
            f"def remove(s, v, row): return [{', '.join(removes)}]\n"
            f"def merge(a, b, key): return [{', '.join(merges)}]\n"
            f"def result(s): return ({''.join(each + ', ' for each in results)})\n"
        )
        exec(compile(source, f"<{node.name}>", "exec"), names)
        self.add, self.remove, self.merge, self.result = (
            names[each] for each in ("add", "remove", "merge", "result")
        )

    def initial(self) -> list[Any]:
        return [program.initial() for program in self._programs]


def _program(call: AggregateCall, schema: Schema, properties: dict[str, str]) -> Any:
    if call.program is not None:
        return UserAggregate(call.program, schema)
    types = column_types(schema)
    return aggregate_for(call, lambda each: type_of(each, types), properties)
