"""Whatever stands in the topic, it is read to its end, and what clients see of it holds together."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.registry.names import context_of
from penstock.registry.records import Record
from penstock.registry.state import State
from penstock.registry.terms import Term
from tests.unit.registry.logs import Log

NAMES = st.sampled_from(["a", "b", ":.c:a", ":.c:", ":*:", "", "\u0000", ":.__GLOBAL:"])
ODD = st.one_of(st.none(), st.booleans(), st.integers(-2, 5), st.text(max_size=2), st.just([]), st.just({}))
NUMBERS = st.one_of(st.integers(1, 3), ODD)
REFERENCES = st.one_of(
    ODD,
    st.lists(
        st.fixed_dictionaries({"name": st.just("n"), "subject": NAMES, "version": st.integers(-1, 2)}),
        max_size=2,
    ),
)
OTHERS = ["CONFIG", "MODE", "NOOP", "DELETE_SUBJECT", "CLEAR_SUBJECT", "CONTEXT", "X", 1]
KEYS = st.one_of(
    st.fixed_dictionaries({"keytype": st.just("SCHEMA"), "subject": NAMES, "version": st.integers(1, 3)}),
    st.fixed_dictionaries(
        {"keytype": st.sampled_from(["SCHEMA", *OTHERS])},
        optional={
            "subject": st.one_of(NAMES, ODD),
            "version": NUMBERS,
            "context": st.one_of(st.just(".c"), ODD),
        },
    ),
)
LIKELY = {"id": st.integers(-1, 4), "schema": st.sampled_from(['"int"', '"long"'])}
UNLIKELY = {
    "subject": st.one_of(NAMES, ODD),
    "version": NUMBERS,
    "schemaType": st.one_of(st.just("JSON"), ODD),
    "references": REFERENCES,
    "metadata": ODD,
    "ruleSet": ODD,
    "deleted": ODD,
    "mode": ODD,
    "compatibilityLevel": ODD,
    "maxIds": st.one_of(ODD, st.dictionaries(st.just("."), ODD)),
}
VALUES = st.one_of(
    st.fixed_dictionaries(LIKELY),
    st.fixed_dictionaries(LIKELY, optional=UNLIKELY),
    st.fixed_dictionaries({}, optional={**UNLIKELY, "id": NUMBERS, "schema": ODD}),
    ODD,
)
TERMS = st.one_of(st.none(), st.builds(Term, st.integers(1, 3), st.sampled_from(["x", "y"])))


@given(st.lists(st.tuples(KEYS, VALUES, TERMS), max_size=25))
def test_any_records_are_read(rows: list[tuple[dict[str, Any], Any, Term | None]]) -> None:
    log = Log()
    for key, value, term in rows:
        log.append(
            Record(json.dumps(key).encode(), None if value is None else json.dumps(value).encode()), term
        )
    state = log.state()
    check(state)
    for key_bytes in state.overwritten:
        state.value_that_counts(key_bytes)


def check(state: State) -> None:
    for name, versions in state.subjects.items():
        assert list(versions) == sorted(versions)
        assert versions
        for number, version in versions.items():
            assert version.place == (name, number)
            schema = state.schemas[context_of(name)][version.id]
            assert version.place in schema.places
            assert version.id <= state.max_ids.get(context_of(name), 0)
            assert len(version.content.guid) == 36
    for context, schemas in state.schemas.items():
        for schema in schemas.values():
            assert schema.places
            assert all(context_of(name) == context for name, _ in schema.places)
            assert all(number in state.subjects[name] for name, number in schema.places)
    for marks in state.ids.items():
        context, by_mark = marks
        assert all(schema_id in state.schemas[context] for schema_id in by_mark.values())
    for places in state.referrers.values():
        assert all(number in state.subjects[name] for name, number in places)
