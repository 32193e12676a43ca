"""Objects: which properties there are, which must be there, and what else may be.

An object's content model is open (anything else may be there), closed (`additionalProperties: false`), or partially open (what
else is there must fit a schema). Whether a property may come or go depends on it: in an open model, old values may have had
anything under the new property's name.
"""

from __future__ import annotations

from penstock.schemas.json_schema.differences import Findings
from penstock.schemas.json_schema.nodes import Anything, Child, Nothing, Object
from penstock.schemas.json_schema.pairs import Pair, Steps, compare_children, compare_limits


def compare(old: Object, new: Object, found: Findings) -> Steps:
    _compare_required(old, new, found)
    for name in sorted(old.properties.keys() | new.properties.keys()):
        before, after = old.properties.get(name), new.properties.get(name)
        path = f"properties/{name}"
        if before is not None and after is not None:
            yield from compare_children(before, after, found, path)
        elif before is not None:
            yield from _removed(name, before, new, found, path)
        elif after is not None:
            yield from _added(name, after, old, new, found, path)
    yield from _compare_dependencies(old, new, found)
    yield from _compare_additional(old, new, found)
    yield from compare_unevaluated(
        "PROPERTIES", "unevaluatedProperties", old.unevaluated, new.unevaluated, found
    )
    compare_limits("MAX_PROPERTIES", "maxProperties", old.max_properties, new.max_properties, found)
    compare_limits("MIN_PROPERTIES", "minProperties", old.min_properties, new.min_properties, found)


def compare_unevaluated(
    name: str, keyword: str, old: Child | None, new: Child | None, found: Findings
) -> Steps:
    """Of properties and items. Without the keyword it is as if it were true; only false forbids."""
    if old is None and new is None:
        return
    before, after = (None if each is None else each.node for each in (old, new))
    forbade, forbids = isinstance(before, Nothing), isinstance(after, Nothing)
    if forbade != forbids:
        found.add(f"UNEVALUATED_{name}_{'ADDED' if forbade else 'REMOVED'}", keyword)
        return
    was_open = before is None or isinstance(before, Anything)
    is_open = after is None or isinstance(after, Anything)
    if before is None or after is None or was_open != is_open:
        found.add(f"UNEVALUATED_{name}_{'NARROWED' if _narrows(before, after) else 'EXTENDED'}", keyword)
        return
    yield from compare_children(old, new, found, keyword)


def _narrows(before: object, after: object) -> bool:
    return before is None or (after is not None and isinstance(before, Anything))


def _compare_required(old: Object, new: Object, found: Findings) -> None:
    for name in old.properties.keys() & new.properties.keys():
        was, is_now = name in old.required, name in new.required
        if was and not is_now:
            found.add("REQUIRED_ATTRIBUTE_REMOVED", f"required/{name}")
        elif is_now and not was:
            has_default = new.properties[name].has_default
            found.add(
                "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if has_default else "REQUIRED_ATTRIBUTE_ADDED",
                f"required/{name}",
            )


def _removed(name: str, before: Child, new: Object, found: Findings, path: str) -> Steps:
    if _is_open(new):
        found.add("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
        return
    covering = _covering(new, name)
    if covering is not None:
        below = yield Pair(before.node, covering.node)
        found.take(below, path)
        covered = "IS" if below.is_compatible else "NOT"
        found.add(f"PROPERTY_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    elif isinstance(before.node, Nothing):
        found.add("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        found.add("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _added(name: str, after: Child, old: Object, new: Object, found: Findings, path: str) -> Steps:
    if name not in new.required:
        how = "OPTIONAL_PROPERTY"
    else:
        how = "REQUIRED_PROPERTY_WITH_DEFAULT" if after.has_default else "REQUIRED_PROPERTY"
    if _is_open(old):
        if isinstance(after.node, Anything):
            how = "PROPERTY_WITH_EMPTY_SCHEMA"
        found.add(f"{how}_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    covering = _covering(old, name)
    if covering is not None:
        below = yield Pair(covering.node, after.node)
        found.take(below, path)
        covered = "IS" if below.is_compatible else "NOT"
        found.add(f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    found.add(f"{how}_ADDED_TO_UNOPEN_CONTENT_MODEL", path)


def _compare_dependencies(old: Object, new: Object, found: Findings) -> Steps:
    for name in sorted(old.property_dependencies.keys() | new.property_dependencies.keys()):
        before, after = old.property_dependencies.get(name), new.property_dependencies.get(name)
        if before == after:
            continue
        if after is None:
            change = "REMOVED"
        elif before is None:
            change = "ADDED"
        else:
            change = "EXTENDED" if after > before else "NARROWED" if before > after else "CHANGED"
        found.add(f"DEPENDENCY_ARRAY_{change}", f"dependencies/{name}")
    for name in sorted(old.schema_dependencies.keys() | new.schema_dependencies.keys()):
        was, is_now = old.schema_dependencies.get(name), new.schema_dependencies.get(name)
        path = f"dependencies/{name}"
        if is_now is None:
            found.add("DEPENDENCY_SCHEMA_REMOVED", path)
        elif was is None:
            found.add("DEPENDENCY_SCHEMA_ADDED", path)
        else:
            yield from compare_children(was, is_now, found, path)


def _compare_additional(old: Object, new: Object, found: Findings) -> Steps:
    keyword = "additionalProperties"
    if old.is_closed != new.is_closed:
        found.add(
            "ADDITIONAL_PROPERTIES_ADDED" if old.is_closed else "ADDITIONAL_PROPERTIES_REMOVED", keyword
        )
    elif old.additional is None and new.additional is not None:
        found.add("ADDITIONAL_PROPERTIES_NARROWED", keyword)
    elif new.additional is None and old.additional is not None:
        found.add("ADDITIONAL_PROPERTIES_EXTENDED", keyword)
    else:
        yield from compare_children(old.additional, new.additional, found, keyword)


def _is_open(schema: Object) -> bool:
    if schema.is_closed or schema.additional is not None or schema.pattern_properties:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated.node, Anything)


def _covering(schema: Object, name: str) -> Child | None:
    """The schema that a property without one of its own must fit."""
    for each in schema.pattern_properties:
        if each.matcher.is_valid(name):
            return each.child
    if schema.additional is not None:
        return schema.additional
    if schema.unevaluated is not None and not schema.is_closed:
        return None if isinstance(schema.unevaluated.node, (Anything, Nothing)) else schema.unevaluated
    return None
