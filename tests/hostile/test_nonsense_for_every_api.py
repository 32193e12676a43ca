"""Every API in every version gets bodies that are random, cut off or damaged: answered or closed, never a bug."""

import random
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire import codec
from penstock.wire.apis import APIS
from tests.hostile.message_maker import make, mutate
from tests.hostile.raw_client import (
    API_VERSIONS_KEY,
    OFFERED,
    Closed,
    RawClient,
    assert_sane_error_codes,
    header_of,
    message_class,
    read_response,
)

MAY_WAIT = {"fetch", "join_group", "sync_group"}
"""APIs whose answer may rightly come much later."""
PARKED_S = 0.03
PRODUCE = 0

VERSIONS = [
    (key, version)
    for key, api in APIS.items()
    for version in range(api.min_version, api.max_version + 1)
    if key in OFFERED
]


class Attacker:
    """One connection after another: a new one whenever the broker closed the last."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._client: RawClient | None = None
        self.answered = 0
        self.closed = 0

    def send(self, api_key: int, version: int, body: bytes) -> None:
        client = self._client or RawClient(self._port)
        self._client = None
        may_wait = APIS[api_key].name in MAY_WAIT
        client.socket.settimeout(PARKED_S if may_wait else 10.0)
        client.send_frame(header_of(api_key, version, correlation_id=1) + body)
        if api_key == PRODUCE:
            # The damage may have made acks 0, which gets no answer: then this question's answer comes first.
            client.send_frame(header_of(API_VERSIONS_KEY, 0, correlation_id=2))
        try:
            frame = client.read_frame()
            (correlation_id,) = struct.unpack_from(">i", frame)
            if correlation_id == 1:
                self.answered += 1
                assert_sane_error_codes(read_response(api_key, version, frame))
            if api_key == PRODUCE and correlation_id == 1:
                (correlation_id,) = struct.unpack_from(">i", client.read_frame())
            assert correlation_id == (2 if api_key == PRODUCE else 1)
        except Closed:
            self.closed += 1
        except TimeoutError:
            assert may_wait, f"{APIS[api_key].name} version {version}: no answer and no end for {body.hex()}"
        else:
            self._client = client
            return
        client.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def valid_body(api_key: int, version: int, chance: random.Random) -> bytes:
    return codec.encode(make(message_class(APIS[api_key], "Request"), version, chance), version)


def bodies(api_key: int, version: int, chance: random.Random) -> list[bytes]:
    found = [chance.randbytes(chance.choice((0, 1, 20, 200))) for _ in range(3)]
    for _ in range(3):
        valid = valid_body(api_key, version, chance)
        found.append(valid)
        found += [valid[: chance.randrange(len(valid) + 1)] for _ in range(2)]
        found += [mutate(valid, chance) for _ in range(4)]
    return found


@pytest.mark.parametrize("api_key", sorted(OFFERED), ids=lambda key: APIS[key].name)
def test_every_version_answers_or_closes_whatever_the_body(
    hostile_broker: PenstockBroker, api_key: int
) -> None:
    attacker = Attacker(hostile_broker.port)
    api = APIS[api_key]
    for version in range(api.min_version, api.max_version + 1):
        for body in bodies(api_key, version, random.Random(f"{api_key}/{version}")):
            attacker.send(api_key, version, body)
    attacker.close()
    assert attacker.answered, "not one of the valid requests was answered"
    with RawClient(hostile_broker.port) as other:
        assert other.is_served()
    assert "Traceback" not in hostile_broker.log_path.read_text()


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(api_and_version=st.sampled_from(VERSIONS), seed=st.integers(0, 2**32), body=st.binary(max_size=64))
def test_a_damaged_request_harms_nobody(
    hostile_broker: PenstockBroker, api_and_version: tuple[int, int], seed: int, body: bytes
) -> None:
    api_key, version = api_and_version
    chance = random.Random(seed)
    attacker = Attacker(hostile_broker.port)
    for damaged in (body, mutate(valid_body(api_key, version, chance), chance)):
        attacker.send(api_key, version, damaged)
    attacker.close()
    with RawClient(hostile_broker.port) as other:
        assert other.is_served()
    assert "Traceback" not in hostile_broker.log_path.read_text()
