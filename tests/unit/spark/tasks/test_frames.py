"""Messages as they come over a socket: in pieces, several at once, too long, or of somebody else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.tasks.frames import LENGTH, Inbox, is_proof, new_secret, packed, proof

MESSAGES = st.lists(
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=8), max_size=3), max_size=5
)


@given(MESSAGES, st.integers(1, 40))
def test_messages_come_out_whole_however_they_are_cut(messages: list[dict[str, object]], size: int) -> None:
    data = b"".join(packed(message) for message in messages)
    inbox = Inbox()
    found = [
        message for start in range(0, len(data), size) for message in inbox.take(data[start : start + size])
    ]
    assert found == messages


@pytest.mark.parametrize("data", [LENGTH.pack(101), LENGTH.pack(2) + b"[]", LENGTH.pack(1) + b"{"])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        Inbox(max_bytes=100).take(data)


def test_a_stranger_cannot_nest_a_message_too_deeply() -> None:
    deep = b"[" * 4000
    with pytest.raises(ValueError):
        Inbox(max_bytes=4096).take(LENGTH.pack(len(deep)) + deep)


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError):
        packed({"x": float("nan")})


def test_a_proof_is_of_one_secret_nonce_job_and_task() -> None:
    secret = new_secret()
    given_proof = proof(secret, "n", job="j", task=1)
    assert is_proof(given_proof, secret, "n", job="j", task=1)
    assert not is_proof(given_proof, new_secret(), "n", job="j", task=1)
    assert not is_proof(given_proof, secret, "m", job="j", task=1)
    assert not is_proof(given_proof, secret, "n", job="j", task=2)
    assert not is_proof(None, secret, "n", job="j", task=1)
