"""Who leads instead, in the answers of Produce and Fetch: written by hand, read by the codec that was generated."""

import pytest

from penstock.wire import codec
from penstock.wire import fetch as fetch_wire
from penstock.wire import produce as produce_wire
from penstock.wire.fetch import FetchResult
from penstock.wire.leaders import CurrentLeader, NodeEndpoint
from penstock.wire.messages.fetch import FetchResponse
from penstock.wire.messages.produce import ProduceResponse

LEADER = CurrentLeader(3, 17)
ENDPOINTS = [NodeEndpoint(3, "three.example", 9093, None), NodeEndpoint(4, "four" * 40, 9094, "rack-b")]


@pytest.mark.parametrize("version", [10, 12, 13])
def test_a_refused_batch_is_answered_with_the_leader(version: int) -> None:
    key = bytes(range(16)) if version >= 13 else "orders"
    results = [
        (key, [(0, 0, 5, -1, 0, None), produce_wire.refused(1, 6), produce_wire.refused(2, 6, "not here")])
    ]
    leaders = {(0, 1): LEADER, (0, 2): LEADER}
    body = produce_wire.write_response(results, version, leaders=leaders, endpoints=ENDPOINTS)
    response, end = codec.decode(ProduceResponse, version, bytes(body), 0)
    assert end == len(body)
    told = response.responses[0].partition_responses
    assert [(each.current_leader.leader_id, each.current_leader.leader_epoch) for each in told] == [
        (-1, -1), (3, 17), (3, 17)
    ]  # fmt: skip
    assert [(each.error_code, each.error_message) for each in told] == [(0, None), (6, None), (6, "not here")]
    assert endpoints(response) == ENDPOINTS


def test_older_clients_are_not_told() -> None:
    results: list[tuple[str | bytes, list[produce_wire.ProduceResult]]] = [
        ("a", [produce_wire.refused(1, 6)])
    ]
    with_leaders = produce_wire.write_response(results, 9, leaders={(0, 0): LEADER}, endpoints=ENDPOINTS)
    assert with_leaders == produce_wire.write_response(results, 9)


@pytest.mark.parametrize("version", [12, 15, 16, 18])
def test_a_refused_read_is_answered_with_the_leader(version: int) -> None:
    key = bytes(range(16)) if version >= 13 else "orders"
    results = [(key, [FetchResult(0, 6, current_leader=LEADER), FetchResult(1, 0, diverging_epoch=(2, 3))])]
    parts, size = fetch_wire.write_response(results, version, endpoints=ENDPOINTS)
    body = b"".join(bytes(part) for part in parts)
    response, end = codec.decode(FetchResponse, version, body, 0)
    assert end == size == len(body)
    refused, diverging = response.responses[0].partitions
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == LEADER
    assert (diverging.diverging_epoch.epoch, diverging.current_leader.leader_id) == (2, -1)
    assert endpoints(response) == (ENDPOINTS if version >= 16 else [])


def endpoints(response: ProduceResponse | FetchResponse) -> list[NodeEndpoint]:
    return [NodeEndpoint(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
