"""Arrays: the schema of all items, those of the first ones, and of the rest."""

from __future__ import annotations

from penstock.schemas.json_schema.differences import Findings
from penstock.schemas.json_schema.nodes import Anything, Array, Child, Nothing
from penstock.schemas.json_schema.objects import compare_unevaluated
from penstock.schemas.json_schema.pairs import Pair, Steps, compare_children, compare_limits


def compare(old: Array, new: Array, found: Findings) -> Steps:
    yield from compare_children(old.every, new.every, found, "items")
    for index in range(max(len(old.items), len(new.items))):
        path = f"items/{index}"
        if index >= len(new.items):
            yield from _removed(old.items[index], new, found, path)
        elif index >= len(old.items):
            yield from _added(new.items[index], old, found, path)
        else:
            yield from compare_children(old.items[index], new.items[index], found, path)
    yield from _compare_additional(old, new, found)
    yield from compare_unevaluated("ITEMS", "unevaluatedItems", old.unevaluated, new.unevaluated, found)
    compare_limits("MAX_ITEMS", "maxItems", old.max_items, new.max_items, found)
    compare_limits("MIN_ITEMS", "minItems", old.min_items, new.min_items, found)
    if old.is_unique != new.is_unique:
        found.add("UNIQUE_ITEMS_REMOVED" if old.is_unique else "UNIQUE_ITEMS_ADDED", "uniqueItems")
    compare_limits("MAX_CONTAINS", "maxContains", old.max_contains, new.max_contains, found)
    compare_limits("MIN_CONTAINS", "minContains", old.min_contains, new.min_contains, found)


def _removed(before: Child, new: Array, found: Findings, path: str) -> Steps:
    if _is_open(new):
        found.add("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
        return
    covering = _covering(new)
    if covering is not None:
        below = yield Pair(before.node, covering.node)
        found.take(below, path)
        covered = "IS" if below.is_compatible else "NOT"
        found.add(f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    elif isinstance(before.node, Nothing):
        found.add("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        found.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _added(after: Child, old: Array, found: Findings, path: str) -> Steps:
    if _is_open(old):
        is_empty = isinstance(after.node, Anything)
        found.add(f"ITEM_{'WITH_EMPTY_SCHEMA_' if is_empty else ''}ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    covering = _covering(old)
    if covering is not None:
        below = yield Pair(covering.node, after.node)
        found.take(below, path)
        covered = "IS" if below.is_compatible else "NOT"
        found.add(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    else:
        found.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", path)


def _compare_additional(old: Array, new: Array, found: Findings) -> Steps:
    keyword = "additionalItems"
    if old.is_closed != new.is_closed:
        found.add("ADDITIONAL_ITEMS_ADDED" if old.is_closed else "ADDITIONAL_ITEMS_REMOVED", keyword)
    elif old.additional is None and new.additional is not None:
        found.add("ADDITIONAL_ITEMS_NARROWED", keyword)
    elif new.additional is None and old.additional is not None:
        found.add("ADDITIONAL_ITEMS_EXTENDED", keyword)
    else:
        yield from compare_children(old.additional, new.additional, found, keyword)


def _is_open(schema: Array) -> bool:
    if schema.is_closed or schema.additional is not None:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated.node, Anything)


def _covering(schema: Array) -> Child | None:
    if schema.additional is not None:
        return schema.additional
    if schema.unevaluated is not None and not schema.is_closed:
        return None if isinstance(schema.unevaluated.node, (Anything, Nothing)) else schema.unevaluated
    return None
