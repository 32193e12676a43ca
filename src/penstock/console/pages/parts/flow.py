"""Where the boxes of a drawing of flows are ◇: what is made from something is to the right of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

MAX_RANKS: Final = 60


def placed(nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Column and row of each node. A circle is cut where it closes.

    >>> placed(["a", "b"], [("a", "b")])
    {'a': (0.0, 0.0), 'b': (1.0, 0.0)}
    """
    known = set(nodes)
    pairs = {(one, other) for one, other in edges if one in known and other in known and one != other}
    before: dict[str, list[str]] = {node: [] for node in nodes}
    for one, other in sorted(pairs):
        before[other].append(one)
    ranks = _ranks(nodes, pairs)
    columns: dict[int, list[str]] = {}
    for node in nodes:
        columns.setdefault(ranks[node], []).append(node)
    rows: dict[str, float] = {}
    for rank in sorted(columns):
        column = columns[rank]
        column.sort(key=lambda node: (_middle([rows[each] for each in before[node] if each in rows]), node))
        taken = -1.0
        for node in column:
            wanted = _middle([rows[each] for each in before[node] if each in rows])
            taken = max(taken + 1.0, wanted)
            rows[node] = taken
    return {node: (float(ranks[node]), rows[node]) for node in nodes}


def _ranks(nodes: Sequence[str], pairs: set[tuple[str, str]]) -> dict[str, int]:
    ranks = dict.fromkeys(nodes, 0)
    for _ in range(min(len(nodes), MAX_RANKS)):
        has_moved = False
        for one, other in pairs:
            if ranks[other] < ranks[one] + 1 <= MAX_RANKS:
                ranks[other] = ranks[one] + 1
                has_moved = True
        if not has_moved:
            break
    return ranks


def _middle(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
