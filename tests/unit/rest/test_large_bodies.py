"""Large requests, read record by record: the same as a parser gives."""

import asyncio
import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.rest.produce import large_bodies

texts = st.text(alphabet='{}[]"\\, :ä', max_size=5)
records = st.dictionaries(
    texts, st.none() | st.integers(-9, 9) | texts | st.lists(texts, max_size=2), max_size=2
)


@pytest.fixture(autouse=True, scope="module")
def everything_is_large() -> Any:
    before = large_bodies.LARGE_BYTES
    large_bodies.LARGE_BYTES = 0  # type: ignore[misc]
    yield
    large_bodies.LARGE_BYTES = before  # type: ignore[misc]


def parsed(data: bytes) -> Any:
    return asyncio.run(large_bodies.parsed(data))


@settings(max_examples=50)
@given(st.lists(records, max_size=3), st.sampled_from([None, 2, 4]), st.booleans(), st.none() | texts)
def test_it_is_what_a_parser_gives(
    found: list[dict[str, Any]], indent: int | None, is_last: bool, schema: str | None
) -> None:
    others = {"value_schema": schema, "value_schema_id": 7}
    document = {**others, "records": found} if is_last else {"records": found, **others}
    assert parsed(json.dumps(document, indent=indent).encode()) == document


@pytest.mark.parametrize(
    "text",
    [
        '{"records":[]}',
        "[1]",
        '"x"',
        "7",
        '{"records":{"a":1}}',
        '{"records":[1,2]}',
        '{"re\\u0063ords":[{}]}',
        "{}",
    ],
)
def test_other_forms_are_left_to_the_parser(text: str) -> None:
    assert parsed(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"records":[', '{"records":[{}', '{"records":[{}]', '{"records":[{}{}]}', '{"records":[{},]}', '{"records":[{}]}x',
     '{"records":[{}}', '{"records":[{"a":"]}', '{"records":[{"a"}]}', '{"a":,"records":[{}]}', '{"records":[{}],}'],
)  # fmt: skip
def test_what_is_no_json_is_said_to_be_none(text: str) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parsed(text.encode())
