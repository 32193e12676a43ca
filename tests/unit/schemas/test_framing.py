from uuid import UUID

import pytest

from penstock.schemas.framing import framed, unframed
from penstock.schemas.model import InvalidSchema, InvalidValue
from penstock.schemas.subject_names import RECORD_NAME, TOPIC_RECORD_NAME, strategy_of, subject_of

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


def test_a_value_says_its_schema_in_five_bytes() -> None:
    value = framed(258, b"rest")
    assert value == b"\x00\x00\x00\x01\x02rest"
    found = unframed(value)
    assert (found.schema, bytes(found.data)) == (258, b"rest")


def test_a_value_may_say_its_schema_by_guid() -> None:
    found = unframed(b"\x01" + GUID.bytes + b"rest")
    assert (found.schema, bytes(found.data)) == (GUID, b"rest")


@pytest.mark.parametrize("value", [b"", b"\x00\x00\x00\x01", b"\x01" * 16, b'{"a": 1}'])
def test_a_value_without_a_schema_is_told(value: bytes) -> None:
    with pytest.raises(InvalidValue, match="id of a schema"):
        unframed(value)


@pytest.mark.parametrize(
    "name", ["RECORD_NAME", "RecordNameStrategy", "io.confluent.kafka.serializers.subject.RecordNameStrategy"]
)
def test_a_strategy_has_several_names(name: str) -> None:
    assert strategy_of(name) == RECORD_NAME


def test_an_unknown_strategy_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="'Mine' is not one of TopicNameStrategy"):
        strategy_of("Mine")


def test_subjects_are_named_by_topic_and_record() -> None:
    assert subject_of("orders", is_key=False) == "orders-value"
    assert subject_of("orders", is_key=True) == "orders-key"
    assert subject_of("t", is_key=True, strategy=RECORD_NAME, full_name=lambda: "shop.Order") == "shop.Order"
    found = subject_of("t", is_key=False, strategy=TOPIC_RECORD_NAME, full_name=lambda: "shop.Order")
    assert found == "t-shop.Order"


def test_a_subject_by_record_needs_a_name() -> None:
    with pytest.raises(InvalidSchema, match="needs a schema with a name"):
        subject_of("t", is_key=False, strategy=RECORD_NAME)
