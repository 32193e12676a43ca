"""allOf, anyOf and oneOf: which part of the old schema became which of the new one.

Every part of the smaller side needs a partner of its own on the other: a largest matching in a bipartite graph, found by
augmenting paths in breadth (a path takes time by the number of edges; there is one for each part).
"""

from __future__ import annotations

from collections import deque

from penstock.schemas.json_schema.differences import Findings
from penstock.schemas.json_schema.nodes import ALL, ANY, ONE, Child, Combined
from penstock.schemas.json_schema.pairs import Pair, Steps


def compare(old: Combined, new: Combined, found: Findings) -> Steps:
    if not _compare_criteria(old, new, found):
        return
    before, after = _different(old.parts), _different(new.parts)
    if len(before) < len(after):
        found.add("PRODUCT_TYPE_EXTENDED" if new.criterion == ALL else "SUM_TYPE_EXTENDED")
    elif len(before) > len(after):
        found.add("SUM_TYPE_NARROWED" if old.criterion in (ANY, ONE) else "PRODUCT_TYPE_NARROWED")
    edges: list[dict[int, Findings]] = []
    for each in before:
        fitting: dict[int, Findings] = {}
        for index, other in enumerate(after):
            below = yield Pair(each.node, other.node)
            if below.is_compatible:
                fitting[index] = below
        edges.append(fitting)
    matched = largest_matching(edges)
    for number, partner in sorted(matched.items()):
        found.take(edges[number][partner], f"{old.criterion}/{number}")
    if len(matched) < min(len(before), len(after)):
        found.add("COMBINED_TYPE_SUBSCHEMAS_CHANGED")


def largest_matching(edges: list[dict[int, Findings]]) -> dict[int, int]:
    """From each part on the left to its partner on the right, for as many as have one."""
    left: dict[int, int] = {}
    right: dict[int, int] = {}
    for start in range(len(edges)):
        came_from: dict[int, int] = {}  # a part on the right: the one on the left that found it
        waiting = deque([start])
        end = None
        while waiting and end is None:
            here = waiting.popleft()
            for there in edges[here]:
                if there in came_from:
                    continue
                came_from[there] = here
                if there not in right:
                    end = there
                    break
                waiting.append(right[there])
        while end is not None:
            here = came_from[end]
            freed = left.get(here)
            left[here], right[end] = end, here
            end = freed
    return left


def _different(parts: tuple[Child, ...]) -> list[Child]:
    """Without those that say the same as one before them."""
    if len(parts) < 2:
        return list(parts)
    seen: dict[str, Child] = {}
    for part in parts:
        seen.setdefault(part.key, part)
    return list(seen.values())


def _compare_criteria(old: Combined, new: Combined, found: Findings) -> bool:
    """Whether the parts can be compared at all."""
    if old.criterion == new.criterion:
        return True
    was_one, is_one = len(old.parts) == 1, len(new.parts) == 1
    if (
        new.criterion == ANY
        or (was_one and is_one)
        or (was_one and new.criterion == ONE)
        or (is_one and old.criterion == ALL)
    ):
        found.add("COMBINED_TYPE_EXTENDED")
        return True
    found.add("COMBINED_TYPE_CHANGED")
    return False
