"""Objects of a stream, cut apart without being read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.rest.v3.json_stream import NotObjects, ObjectSplitter, TooLarge

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='{}[]"\\,: äx'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='{}"\\x'), inner),
    max_leaves=4,
)


@settings(max_examples=50)
@given(
    objects=st.lists(st.dictionaries(st.text(alphabet='{}"\\x'), values, max_size=3), max_size=4),
    between=st.sampled_from(["", " ", "\n", ",", " ,\r\n"]),
    size=st.integers(1, 40),
    is_ascii=st.booleans(),
)
def test_objects_come_out_as_they_went_in_however_they_are_cut(
    objects: list[dict[str, object]], between: str, size: int, is_ascii: bool
) -> None:
    data = between.join(json.dumps(one, ensure_ascii=is_ascii) for one in objects).encode()
    splitter = ObjectSplitter(1 << 20)
    found = [one for at in range(0, len(data), size) for one in splitter.feed(data[at : at + size])]
    assert [json.loads(one) for one in found] == objects
    assert splitter.is_between


@pytest.mark.parametrize("data", [b"[", b"1", b"{} x", b"}", b'"a"', b"\xff"])
def test_what_is_no_object_ends_the_stream(data: bytes) -> None:
    with pytest.raises(NotObjects):
        list(ObjectSplitter(100).feed(data))


def test_one_object_is_bounded_and_the_stream_is_not() -> None:
    splitter = ObjectSplitter(10)
    for _ in range(100):
        assert list(splitter.feed(b'{"a":1}')) == [b'{"a":1}']
    with pytest.raises(TooLarge):
        list(splitter.feed(b'{"a":"' + b"x" * 20))
    with pytest.raises(TooLarge):
        list(ObjectSplitter(10).feed(b'{"a":"' + b"x" * 20 + b'"}'))
