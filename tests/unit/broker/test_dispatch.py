"""Dispatch: what a client is told when a handler cannot answer."""

from typing import Any, cast

import pytest

from penstock.broker.handlers import describe_cluster
from penstock.broker.requests.dispatch import Dispatch, Handler
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.net.peers import PeerUnavailable
from penstock.wire.framing import read_header
from tests.hostile.raw_client import frame_of, read_response


@pytest.mark.parametrize("error", [PeerUnavailable("127.0.0.1:9093: Connection refused"), TimeoutError()])
def test_another_broker_that_does_not_answer_is_no_fault_of_our_disk(error: OSError) -> None:
    handler = Handler(describe_cluster)
    frame = memoryview(bytearray(frame_of(describe_cluster.REQUEST(), 0)))
    header = read_header(frame)
    call: Any = type("Call", (), {"header": header, "api_version": 0})()
    dispatch = Dispatch(cast(Any, None))
    parts = dispatch._failed(handler, call, describe_cluster.REQUEST(), error)
    assert parts is not None
    response = read_response(int(ApiKey.DESCRIBE_CLUSTER), 0, b"".join(bytes(part) for part in parts)[4:])
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
