"""What the rules promise: a value that the old schema accepts is accepted by a new one that is compatible.

Confluent's rules break it in places that are known, and the grammar here keeps out of them:
  - between a schema of a type and one of the same keywords without the type, no difference is seen ({"minLength": 1} and
    {"type": "string", "minLength": 1});
  - `contains`, `propertyNames`, `format`, `if`, and the schemas of `patternProperties` are not compared, nor is `required` of
    names that have no property;
  - a required property with a default may be added, although values without it are not valid;
  - oneOf with more alternatives, or in the place of anyOf: a value may then fit two of them.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from penstock.schemas.json_schema.parsing import JsonSchema, compiled, parse

NAMES = ("a", "b", "c")
LIMITS = st.integers(0, 3)


def _some(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


def _typed(name: str, rest: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return rest.map(lambda keywords: {"type": name, **keywords})


LEAVES = st.one_of(
    st.sampled_from([{"type": "null"}, {"type": "boolean"}, {}]),
    _typed("string", _some(minLength=LIMITS, maxLength=LIMITS)),
    _typed("integer", _some(minimum=LIMITS, maximum=LIMITS, multipleOf=st.integers(1, 3))),
    _typed("number", _some(exclusiveMinimum=LIMITS, maximum=LIMITS)),
    st.lists(st.sampled_from([1, "x", None, True]), min_size=1, unique_by=repr).map(
        lambda each: {"enum": each}
    ),
    st.lists(st.sampled_from(["string", "null", "integer"]), min_size=1, unique=True).map(
        lambda each: {"type": each}
    ),
)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    @st.composite
    def objects(draw: st.DrawFn) -> dict[str, Any]:
        properties = draw(st.dictionaries(st.sampled_from(NAMES), inner, max_size=3))
        found: dict[str, Any] = {"type": "object", "properties": properties}
        required = draw(st.sets(st.sampled_from(NAMES)).map(lambda names: sorted(names & properties.keys())))
        if required:
            found["required"] = required
        additional = draw(st.one_of(st.none(), st.just(False), inner))
        if additional is not None:
            found["additionalProperties"] = additional
        return {**found, **draw(_some(minProperties=LIMITS, maxProperties=LIMITS))}

    return st.one_of(
        objects(),
        _typed("array", _some(items=inner, minItems=LIMITS, maxItems=LIMITS, uniqueItems=st.booleans())),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"allOf": parts}),
    )


SCHEMAS = st.recursive(LEAVES, _larger, max_leaves=5)
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 2, 3, 0.5, "", "x", "yy", "zzzz"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from((*NAMES, "other")), inner, max_size=3)
    ),
    max_leaves=6,
)


def _changed(schema: Any) -> st.SearchStrategy[Any]:
    """The same with one thing taken away or another in its place, at any depth: most random pairs have nothing in common."""
    if not isinstance(schema, dict) or not schema:
        return SCHEMAS
    ways: list[st.SearchStrategy[Any]] = [SCHEMAS, st.just(schema)]
    for keyword, value in schema.items():
        ways.append(st.just({key: each for key, each in schema.items() if key != keyword or key == "type"}))
        if isinstance(value, int) and not isinstance(value, bool):
            ways.append(
                LIMITS.map(
                    lambda limit, keyword=keyword: {
                        **schema,
                        keyword: max(limit, int(keyword == "multipleOf")),
                    }
                )
            )
        elif keyword == "properties":
            ways += [
                _changed(each).map(
                    lambda new, name=name, value=value: {**schema, "properties": {**value, name: new}}
                )
                for name, each in value.items()
            ]
        elif keyword in ("anyOf", "allOf"):
            ways.append(
                st.lists(SCHEMAS, max_size=1).map(
                    lambda more, keyword=keyword, value=value: {**schema, keyword: value + more}
                )
            )
        elif keyword in ("items", "additionalProperties"):
            ways.append(_changed(value).map(lambda new, keyword=keyword: {**schema, keyword: new}))
    return st.one_of(ways)


def _parsed(schema: Any) -> JsonSchema:
    return parse(json.dumps(schema), (), {})


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_compatible_accepts_what_was_accepted(data: st.DataObject) -> None:
    before = data.draw(SCHEMAS, label="old")
    after = data.draw(_changed(before), label="new")
    old, new = _parsed(before), _parsed(after)
    assume(not new.incompatibilities(old, policy="STRICT"))
    accepts, still_accepts = compiled(old.documents).is_valid, compiled(new.documents).is_valid
    for value in data.draw(st.lists(VALUES, min_size=20, max_size=20), label="values"):
        if accepts(value):
            assert still_accepts(value), value


@given(schema=SCHEMAS)
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_schema_is_compatible_with_itself(schema: Any) -> None:
    assert _parsed(schema).incompatibilities(_parsed(schema), policy="STRICT") == []
