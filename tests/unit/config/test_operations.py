import pytest

from penstock.config.operations import APPEND, DELETE, SET, SUBTRACT, alter
from penstock.config.topic_options import topic_option
from penstock.model.errors import ApiError, ErrorCode


def altered(current: dict[str, str], *operations: tuple[str, int, str | None]) -> dict[str, str]:
    return alter(current, operations, option_of=topic_option)


def refusal(*operations: tuple[str, int, str | None]) -> tuple[ErrorCode, str | None]:
    with pytest.raises(ApiError) as caught:
        altered({}, *operations)
    return caught.value.code, caught.value.detail


def test_set_and_delete_change_what_they_name_and_nothing_else() -> None:
    current = {"retention.ms": "1", "flush.ms": "2", "segment.ms": "3"}
    after = altered(
        current, ("retention.ms", SET, "9"), ("flush.ms", DELETE, None), ("preallocate", DELETE, None)
    )
    assert after == {"retention.ms": "9", "segment.ms": "3"}
    assert current == {"retention.ms": "1", "flush.ms": "2", "segment.ms": "3"}


def test_append_starts_from_the_default_where_nothing_is_set() -> None:
    after = altered({}, ("cleanup.policy", APPEND, "compact"))
    assert after == {"cleanup.policy": "delete,compact"}


def test_append_adds_only_what_is_missing() -> None:
    after = altered({"cleanup.policy": "compact"}, ("cleanup.policy", APPEND, "compact,delete"))
    assert after == {"cleanup.policy": "compact,delete"}


def test_subtract_takes_out_what_is_there() -> None:
    after = altered({"cleanup.policy": "compact,delete"}, ("cleanup.policy", SUBTRACT, "compact,other"))
    assert after == {"cleanup.policy": "delete"}


def test_only_lists_can_be_appended_to() -> None:
    detail = "Can't APPEND to key retention.ms because its type is not LIST."
    assert refusal(("retention.ms", APPEND, "1")) == (ErrorCode.INVALID_CONFIG, detail)
    assert refusal(("bogus", SUBTRACT, "1"))[0] is ErrorCode.INVALID_CONFIG


def test_a_name_may_come_once_only() -> None:
    assert refusal(("flush.ms", SET, "1"), ("flush.ms", DELETE, None)) == (
        ErrorCode.INVALID_REQUEST,
        "Error due to duplicate config keys",
    )


def test_only_delete_goes_without_a_value() -> None:
    assert refusal(("flush.ms", SET, None), ("cleanup.policy", APPEND, None)) == (
        ErrorCode.INVALID_REQUEST,
        "Null value not supported for : flush.ms, cleanup.policy",
    )


def test_an_unknown_operation_is_refused() -> None:
    assert refusal(("flush.ms", 9, "1")) == (ErrorCode.INVALID_REQUEST, "Unknown operations type 9")
