import pytest

from penstock.controller import names
from penstock.model.errors import ApiError, ErrorCode


@pytest.mark.parametrize("name", ["orders", "a.b", "a_b", "A-9", "x" * 249, "...", "__consumer_offsets"])
def test_good_names_pass(name: str) -> None:
    names.check_name(name)
    assert names.is_valid(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("é", "'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_bad_names_are_refused_in_kafkas_words(name: str, reason: str) -> None:
    with pytest.raises(ApiError) as caught:
        names.check_name(name)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert caught.value.detail == f"Topic name is invalid: {reason}"


def test_names_that_differ_only_in_dot_and_underscore_collide() -> None:
    with pytest.raises(ApiError) as caught:
        names.check_collision("a.b_c", ["orders", "a_b_c"])
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert caught.value.detail == "Topic 'a.b_c' collides with existing topic: a_b_c"


def test_other_names_do_not_collide() -> None:
    names.check_collision("a.b", ["a.b.c", "ab", "a-b", "a.b"])
    names.check_collision("orders", ["orders2"])
