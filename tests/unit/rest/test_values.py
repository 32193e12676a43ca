"""Keys and values in JSON."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.errors import NoSuchGroup, NoSuchTopic, Refused, Unreachable
from penstock.model.errors import ErrorCode
from penstock.rest import errors
from penstock.rest.v3.writing import iso
from penstock.rest.values import read_binary, write_binary, write_json, write_string
from penstock.web.errors import HttpError


@given(st.binary())
def test_base64_is_taken_with_padding_and_without(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert read_binary(data) == text
    assert write_binary(text) == write_binary(text.rstrip("=")) == data


@pytest.mark.parametrize("data", ["?", "a", "YQ==YQ==", "YQ\n==", "YQ=a", "ä", 1, True, [], {"a": 1}])
def test_what_is_not_base64_is_refused(data: object) -> None:
    with pytest.raises(HttpError, match="base64") as refused:
        write_binary(data)
    assert refused.value.status == 400
    assert len(refused.value.message) < 300


def test_null_is_no_value_at_all() -> None:
    assert [write(None) for write in (write_binary, write_json, write_string)] == [None, None, None]
    assert write_json({"a": [1, None]}) == b'{"a":[1,null]}'
    with pytest.raises(HttpError, match="not a string"):
        write_string(1)


@pytest.mark.parametrize(
    ("code", "status", "error_code"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 404, 40403),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 403, 40301),
        (ErrorCode.SASL_AUTHENTICATION_FAILED, 401, 40101),
        (ErrorCode.TOPIC_ALREADY_EXISTS, 400, 40002),
        (ErrorCode.NOT_CONTROLLER, 500, 50003),
        (ErrorCode.CORRUPT_MESSAGE, 500, 50003),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 500, 50002),
        (-200, 500, 50002),
    ],
)
def test_each_error_of_the_cluster_has_its_code(code: int, status: int, error_code: int) -> None:
    found = errors.refusal(Refused("no", code=code))
    assert found is not None
    assert (found.status, found.error_code) == (status, error_code)


def test_what_is_not_there_is_told_without_commands_of_the_command_line() -> None:
    for error in (NoSuchGroup("g", ["other"]), NoSuchTopic("t", ["other"])):
        found = errors.refusal(error)
        assert found is not None
        assert (found.status, found.error_code) == (404, 40403)
        assert not re.search("penstock|other", found.message)


def test_a_cluster_that_is_away_is_not_a_wrong_login() -> None:
    away = errors.refusal(Unreachable("cannot reach the broker at x:1: connection refused"))
    assert away is not None
    assert (away.status, away.error_code) == (503, 50302)
    assert errors.refusal(ZeroDivisionError()) is None


def test_times_are_told_as_kafka_rest_tells_them() -> None:
    assert iso(1612552482017) == "2021-02-05T19:14:42.017Z"
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(2**62) == str(2**62)
