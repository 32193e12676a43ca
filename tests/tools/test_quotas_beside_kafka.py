"""AlterClientQuotas and DescribeClientQuotas answer as Apache Kafka answers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from penstock.client.connection import BrokerConnection
from penstock.model.endpoints import Address
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages import alter_client_quotas as altering
from penstock.wire.messages import describe_client_quotas as describing
from simulation.apache.apache_kafka import ApacheKafka
from tests.clients.driver import wait_until

Parts = Sequence[tuple[str, str | None]]
Asked = tuple[Parts, dict[str, float | None]]

SET: list[Asked] = [
    ([("user", "ana")], {"producer_byte_rate": 1024.0}),
    ([("user", "ana"), ("client-id", "app")], {"consumer_byte_rate": 2048.0, "request_percentage": 12.5}),
    ([("user", "ana"), ("client-id", None)], {"request_percentage": 50.0}),
    ([("user", None)], {"producer_byte_rate": 1.0}),
    ([("user", None), ("client-id", "app")], {"producer_byte_rate": 2.0}),
    ([("user", None), ("client-id", None)], {"controller_mutation_rate": 0.5}),
    ([("client-id", "app")], {"producer_byte_rate": 3.0}),
    ([("client-id", None)], {"producer_byte_rate": 4.0}),
    ([("ip", "10.0.0.1")], {"connection_creation_rate": 5.0}),
    ([("ip", None)], {"connection_creation_rate": 6.0}),
]
REFUSED: list[Asked] = [
    ([], {"producer_byte_rate": 1.0}),
    ([("group", "g")], {"producer_byte_rate": 1.0}),
    ([("user", "")], {"producer_byte_rate": 1.0}),
    ([("ip", "10.0.0.1"), ("user", "ana")], {"connection_creation_rate": 1.0}),
    ([("ip", "10.0.0.300")], {"connection_creation_rate": 1.0}),
    ([("user", "u")], {"nonsense": 1.0}),
    ([("user", "u")], {"connection_creation_rate": 1.0}),
    ([("ip", None)], {"request_percentage": 1.0}),
    ([("user", "u")], {"producer_byte_rate": 0.0}),
    ([("user", "u")], {"producer_byte_rate": -1.0}),
    ([("user", "u")], {"producer_byte_rate": 1.5}),
    ([("user", "u")], {"producer_byte_rate": 1e30}),
    ([("ip", None)], {"connection_creation_rate": 1e10}),
    ([("user", "nobody")], {"producer_byte_rate": None}),
]
FILTERS: list[tuple[list[tuple[str, int, str | None]], bool]] = [
    ([], False),
    ([], True),
    *(([("user", how, name)], strict) for how, name in ((0, "ana"), (1, None), (2, None)) for strict in (False, True)),
    *(([("client-id", how, name)], strict) for how, name in ((0, "app"), (1, None), (2, None)) for strict in (False, True)),
    ([("user", 0, "ana"), ("client-id", 1, None)], True),
    ([("user", 2, None), ("client-id", 0, "app")], False),
    ([("user", 1, None), ("client-id", 2, None)], True),
    ([("ip", 2, None)], False),
    ([("ip", 0, "10.0.0.1")], True),
    ([("ip", 1, None)], True),
    ([("", 0, "a")], False),
    ([("group", 0, "a")], False),
    ([("user", 0, None)], False),
    ([("user", 1, "a")], False),
    ([("user", 2, "a")], False),
    ([("user", 9, "a")], False),
    ([("user", 0, "a"), ("user", 2, None)], False),
    ([("user", 0, "a"), ("ip", 2, None)], False),
]  # fmt: skip


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("apache"), quick=True) as running:
        yield running


def connection(port: int) -> BrokerConnection:
    return BrokerConnection(Address("127.0.0.1", port), client_id="quotas", timeout_s=30)


def alter(broker: BrokerConnection, asked: Sequence[Asked]) -> list[tuple[Any, ...]]:
    request = altering.AlterClientQuotasRequest(
        entries=[
            altering.RequestEntryData(
                entity=[altering.EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
                ops=[
                    altering.OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in values.items()
                ],
            )
            for parts, values in asked
        ]
    )
    answer = broker.ask(request, altering.AlterClientQuotasResponse, version=1)
    answers = [
        (each.error_code, each.error_message, {(part.entity_type, part.entity_name) for part in each.entity})
        for each in answer.entries
    ]
    return sorted(answers, key=lambda answer: sorted(map(str, answer[2])))  # Kafka's have no order


def describe(broker: BrokerConnection, components: list[tuple[str, int, str | None]], strict: bool) -> Any:
    request = describing.DescribeClientQuotasRequest(
        components=[
            describing.ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ],
        strict=strict,
    )
    answer = broker.ask(request, describing.DescribeClientQuotasResponse, version=1)
    found = {
        frozenset((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or ()
    }
    return answer.error_code, answer.error_message, found


def test_answers_are_those_of_apache_kafka(
    apache: ApacheKafka, start_broker: Callable[..., PenstockBroker]
) -> None:
    ours, theirs = connection(start_broker().port), connection(apache.port)
    both = (ours, theirs)
    try:
        assert alter(ours, SET) == alter(theirs, SET)
        wait_until(lambda: len(describe(theirs, [], False)[2]) == len(SET), "what was set")
        for each in REFUSED:
            assert alter(ours, [each]) == alter(theirs, [each]), each
        for components, strict in FILTERS:
            mine, expected = (describe(broker, components, strict) for broker in both)
            assert mine == expected, (components, strict)
    finally:
        for broker in both:
            broker.close()
