"""Groups of several streams with one state: their rows become one stream, where each has a column for the rows of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.streams.library import callables
from penstock.streams.library.failures import TopologyError
from penstock.streams.library.grouped import Grouped
from penstock.streams.plan import expressions as e
from penstock.streams.plan import nodes
from penstock.streams.plan import types as t
from penstock.streams.plan.nodes import STREAM, Node
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Window

if TYPE_CHECKING:
    from penstock.streams.library.table import Table


@dataclass(frozen=True)
class Cogrouped:
    _parts: tuple[tuple[Grouped, Callable[..., Any]], ...]
    _window: Window | None = None

    def cogroup(self, grouped: Grouped, add: Callable[..., Any]) -> Cogrouped:
        """`add(key, row, state)` gives the next state."""
        callables.check_callable(add, "cogroup()")
        if not isinstance(grouped, Grouped) or grouped._node.kind is not STREAM:
            raise TopologyError("cogroup() wants groups of streams")
        if grouped._window is not None:
            raise TopologyError("the window comes behind cogroup(): a.cogroup(f).cogroup(b, g).window(…)")
        if self._parts:
            first = self._parts[0][0]
            mine, theirs = [[c.type for c in each._node.schema.key] for each in (first, grouped)]
            if first._program is not grouped._program:
                raise TopologyError("cogroup() wants groups of the same app")
            if mine != theirs:
                raise TopologyError(
                    f"the groups have different keys: {first!r} and {grouped!r}, or other types"
                )
        return replace(self, _parts=(*self._parts, (grouped, add)))

    def window(self, window: Window) -> Cogrouped:
        self._parts[0][0].window(window)
        return replace(self, _window=window)

    def aggregate(
        self,
        initial: Callable[[], Any],
        *,
        value: Any,
        merge: Callable[..., Any] | None = None,
        store: str | None = None,
    ) -> Table:
        """The state of all of them: `initial()` gives the first one."""
        first = self._parts[0][0]
        program = first._program
        keys = tuple(Column(f"key_{at}", each.type) for at, each in enumerate(first._node.schema.key))
        rows = [
            t.struct(*((c.name, c.type) for c in (*g._node.schema.key, *g._node.schema.value)))
            for g, _ in self._parts
        ]
        schema = Schema(keys, tuple(Column(f"row_{at}", type_) for at, type_ in enumerate(rows)))
        tagged = [self._tagged(at, grouped, schema) for at, (grouped, _) in enumerate(self._parts)]
        merged = program.add(
            nodes.Merge(
                name=program.next_name("COGROUPKSTREAM-MERGE"),
                schema=schema,
                kind=STREAM,
                inputs=tuple(tagged),
            )
        )
        adding = _Several(tuple(add for _, add in self._parts))
        formats = {grouped._key_format for grouped, _ in self._parts}
        key_format = formats.pop() if len(formats) == 1 else None
        whole = Grouped(program, merged, first._key, key_format, schema.value, first._name, self._window)
        return whole.aggregate(initial, adding, value=value, merge=merge, store=store)

    def _tagged(self, at: int, grouped: Grouped, schema: Schema) -> Node:
        """Its rows in a column of their own: the others are NULL."""
        node, program = grouped._node, grouped._program
        columns = (*node.schema.key, *node.schema.value)
        whole = e.MakeStruct(tuple((column.name, e.ColumnRef(column.name)) for column in columns))
        items = tuple(
            whole if place == at else e.Cast(e.Literal(None, None), column.type)
            for place, column in enumerate(schema.value)
        )
        return program.add(
            nodes.Project(
                name=program.next_name("COGROUPKSTREAM-TAG"),
                schema=schema,
                kind=STREAM,
                window=node.window,
                input=node,
                items=items,
            )
        )


class _Several:
    """The function of the input that a row is from."""

    def __init__(self, functions: tuple[Callable[..., Any], ...]) -> None:
        self._functions = functions
        self.__name__ = ", ".join(map(callables.name_of, functions))

    def __call__(self, key: Any, row: dict[str, Any], state: Any) -> Any:
        for at, function in enumerate(self._functions):
            mine = row[f"row_{at}"]
            if mine is not None:
                return function(key, mine, state)
        return state
