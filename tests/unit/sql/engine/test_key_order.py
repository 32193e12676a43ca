import math
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.engine.key_order import AFTER, key_order
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import BIGINT, BOOLEAN, BYTES, DOUBLE, STRING, array, decimal, struct

VALUES = {
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
    | st.sampled_from(["", "\0", "a\0", "a"]),
    BYTES: st.binary(max_size=4),
    BOOLEAN: st.booleans(),
    DOUBLE: st.floats(allow_nan=False),
    decimal(12, 3): st.integers(-(10**11), 10**11).map(lambda number: Decimal(number).scaleb(-3)),
}
PAIRS = st.sampled_from(list(VALUES)).flatmap(
    lambda type_: st.tuples(st.just(type_), st.none() | VALUES[type_], st.none() | VALUES[type_])
)


def sign(left, right) -> int:
    """NULL comes first."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    return (left > right) - (left < right)


@given(PAIRS)
def test_the_order_of_keys_is_the_order_of_their_bytes(pair):
    type_, left, right = pair
    order = key_order([Column("K", type_)])
    one, other = order((left,)), order((right,))
    assert sign(one, other) == sign(left, right)
    assert one < one + AFTER
    assert one + AFTER < other or other <= one


@given(st.lists(st.tuples(VALUES[STRING], VALUES[BIGINT]), min_size=2, max_size=2))
def test_keys_of_several_columns_are_ordered_by_the_first(keys):
    order = key_order([Column("A", STRING), Column("B", BIGINT)])
    assert sign(*map(order, keys)) == sign(*keys)


@given(st.lists(st.lists(st.none() | VALUES[STRING], max_size=3), min_size=2, max_size=2))
def test_different_arrays_have_different_bytes(arrays):
    order = key_order([Column("A", array(STRING))])
    assert (order((arrays[0],)) == order((arrays[1],))) == (arrays[0] == arrays[1])


def test_structs_and_zeros():
    order = key_order([Column("A", struct(("X", BIGINT), ("Y", STRING)))])
    assert order(({"X": 1, "Y": None},)) < order(({"X": 1, "Y": ""},)) < order(({"X": 2, "Y": None},))
    zeros = key_order([Column("A", DOUBLE)])
    assert zeros((0.0,)) == zeros((-0.0,))
    assert zeros((math.inf,)) > zeros((1e308,))
