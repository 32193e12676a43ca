"""Conditions on whole columns, beside the same conditions asked of each document in Python."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.errors import UserError
from penstock.console.messages import json_path
from penstock.console.messages.matching import Matcher
from penstock.console.messages.wanted import Part, Wanted
from penstock.records.columnar.columns import FIELDS, HEADERS, KEY, VALUE

SCHEMA = pa.schema([FIELDS[name] for name in (KEY, VALUE, HEADERS)])


def batch(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    """Of (key, value) or (key, value, headers)."""
    columns: dict[str, list[Any]] = {KEY: [], VALUE: [], HEADERS: []}
    for row in rows:
        key, value, *rest = row
        columns[KEY].append(key)
        columns[VALUE].append(value)
        columns[HEADERS].append([{"key": name, "value": data} for name, data in rest[0]] if rest else None)
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


def values(*values: bytes | None) -> pa.RecordBatch:
    return batch(*((None, value) for value in values))


def found(of: pa.RecordBatch, **wanted: Any) -> list[int]:
    mask = Matcher(Wanted(**wanted), json.loads).mask(of)
    assert mask is not None
    return [int(row) for row in np.flatnonzero(mask)]


def test_nothing_said_wants_everything() -> None:
    assert Matcher(Wanted(), json.loads).mask(values(b"x")) is None


def test_text_is_found_as_it_is_and_is_no_pattern() -> None:
    of = values(b"a.c", b"abc", b"A.C", None, b"")
    assert found(of, text="a.c") == [0]
    assert found(of, text="a.c", ignores_case=True) == [0, 2]
    assert found(of, text="a.c", is_pattern=True) == [0, 1]


@given(st.text(min_size=1, max_size=8), st.lists(st.text(max_size=20), min_size=1, max_size=20))
def test_text_is_found_where_python_finds_it(text: str, texts: list[str]) -> None:
    of = values(*(each.encode() for each in texts))
    assert found(of, text=text) == [row for row, each in enumerate(texts) if text in each]


def test_text_is_looked_for_in_the_part_that_is_said() -> None:
    of = batch(
        (b"sun", b"-"),
        (b"-", b"sun"),
        (b"-", b"-", [("sun", b"-")]),
        (b"-", b"-", [("x", b"-"), ("y", b"sun")]),
    )
    assert found(of, text="sun") == [0, 1, 2, 3]
    assert found(of, text="sun", part=Part.KEY) == [0]
    assert found(of, text="sun", part=Part.VALUE) == [1]
    assert found(of, text="sun", part=Part.HEADERS) == [2, 3]


def test_broken_utf_8_breaks_nothing() -> None:
    of = values(b"\xff\xfe sun", b"\xc3", b"\x80" * 100, b"sun")
    assert found(of, text="sun") == [0, 3]
    assert found(of, text=".", is_pattern=True) == [0, 3]
    assert found(of, path='a == "x"') == []


def test_a_key_is_wanted_as_a_whole_as_text_or_as_a_number() -> None:
    of = batch(
        (b"42", b""),
        (b"420", b""),
        ((42).to_bytes(8, "big"), b""),
        ((42).to_bytes(4, "big"), b""),
        (None, b""),
    )
    assert found(of, key="42") == [0, 2, 3]
    assert found(of, key="42*") == [0, 1]


def test_a_key_with_a_star_takes_nothing_else_for_special() -> None:
    of = batch((b"a.b-1\n2", b""), (b"aXb-1", b""))
    assert found(of, key="a.b*") == [0]
    assert found(of, key="*-1") == [1]


def test_a_header_is_wanted_by_its_name_or_by_name_and_value() -> None:
    of = batch(
        (None, b"", [("source", b"shop")]),
        (None, b"", [("source", None), ("x", b"shop")]),
        (None, b""),
        (None, b"", []),
    )
    assert found(of, header="source") == [0, 1]
    assert found(of, header="source=shop") == [0]
    assert found(of, header="sourc") == []


def test_tombstones_alone_can_be_wanted() -> None:
    assert found(values(b"", None, b"x"), only_nulls=True) == [1]


def test_all_conditions_must_hold() -> None:
    of = batch((b"k", b'{"a": 1, "b": "x"}'), (b"k", b'{"a": 2, "b": "x"}'), (b"l", b'{"a": 2, "b": "x"}'))
    assert found(of, key="k", text='"x"', path="a > 1") == [1]


DOCUMENTS = [
    b'{"order": {"total": 120.5, "items": [{"sku": "A", "n": 1}, {"sku": "B", "n": 22}]}, "paid": true}',
    b'{"order": {"total": 99}, "paid": false, "note": null}',
    b'{"order": {"total": "120"}, "note": "a \\"b\\" \\u00e9"}',
    b'{"order": [1, 2]}',
    b'[{"order": {"total": 500}}]',
    b'{"order": {"total": 500}',
    b"17",
    b"",
    None,
    b"not json",
    b'{"total": 9007199254740993, "total2": 1e400}',
    b'{"a": 1, "a": 2}',
]


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("$.order.total > 100", [0]),
        ("order.total >= 99", [0, 1]),
        ("$.order.total == '120'", [2]),
        ("$.order.total != 99", [0, 2]),
        ("$.order.items[1].sku == 'B'", [0]),
        ("$.order.items[*].n > 20", [0]),
        ("$.order.items[2]", []),
        ("$.note", [1, 2]),
        ("$.note == null", [1]),
        ("$.paid == true or $.paid == false", [0, 1]),
        ("not $.paid", [2, 3, 4, 6, 10, 11]),
        ('$.note contains "\\u00e9"', [2]),
        ('$.note matches "^a .b"', [2]),
        ("$[0].order.total = 500", [4]),
        ("$ > 16", [6]),
        ("$.total == 9007199254740993", [10]),
        ("$.total == 9007199254740992", []),
        ("$.a == 2", [11]),
        ("$.a == 1", []),
        ("($.order.total > 100 && $.paid) || $.a > 1", [0, 11]),
    ],
)  # fmt: skip
def test_a_condition_on_json_holds_of_these(path: str, rows: list[int]) -> None:
    assert found(values(*DOCUMENTS), path=path) == rows


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-200, 200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "é", 'q"']), inner, max_size=3)
    ),
    max_leaves=8,
)
steps = st.sampled_from(["a", "b", "é", 'q"', 0, 1, None])
comparisons = st.builds(
    json_path.Comparison,
    st.lists(steps, max_size=3).map(tuple),
    st.sampled_from(["", "==", "!=", "<", "<=", ">", ">="]),
    scalars,
)
expressions = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(json_path.Not, inner)
        | st.builds(json_path.Every, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(json_path.Some, st.lists(inner, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=4,
)


@given(expressions, st.lists(documents, min_size=1, max_size=10), st.booleans())
def test_columns_and_documents_agree(
    expression: json_path.Expression, texts: list[Any], ascii_only: bool
) -> None:
    encoded = [json.dumps(each, ensure_ascii=ascii_only).encode() for each in texts]
    wanted = Wanted()
    vars(wanted)["expression"] = expression
    vars(wanted)["path"] = "given"
    matcher = Matcher(wanted, json.loads)
    mask = matcher.mask(values(*encoded))
    assert mask is not None
    assert mask.tolist() == [json_path.holds(expression, each) for each in texts]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"text": "(a+)+(?=b)", "is_pattern": True}, r"looking ahead, which can take forever"),
        ({"text": r"(a)\1", "is_pattern": True}, "refers back to a group"),
        ({"text": "(", "is_pattern": True}, "cannot be read: missing"),
        ({"text": "((a{100}){100}){100}", "is_pattern": True}, "too large"),
        ({"path": "$.a == paid"}, 'text stands in quotes: "paid"'),
        ({"path": "$.a > "}, "cannot be read at its end"),
        ({"path": "$.a matches '(?<=x)'"}, "looking behind"),
        ({"path": "(" * 100 + "a" + ")" * 100}, "nested more than 50 deep"),
        ({"path": "a or " * 20 + "a"}, "20 comparisons at most"),
        ({"text": "x" * 501}, "500 characters at most"),
    ],
)
def test_what_cannot_be_looked_for_is_refused_before_anything_is_read(
    wanted: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        Wanted(**wanted)


def test_a_pattern_that_explodes_elsewhere_takes_no_time_here() -> None:
    of = values(b"a" * 100_000 + b"!")
    assert found(of, text="(a+)+$", is_pattern=True) == []


def test_ten_thousand_columns_are_only_a_longer_text() -> None:
    wide = json.dumps({f"column_{n}": n for n in range(10_000)}).encode()
    assert found(values(wide, wide), path="column_9999 == 9999") == [0, 1]
