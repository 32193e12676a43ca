"""Batches through a proxy that loses answers: each is there once, in its order, and it is known where."""

import pytest

from penstock.client.options import client_options
from penstock.mirror.batches import Outgoing
from penstock.mirror.writing import BatchWriter, Sending
from penstock.model.ids import TopicPartition
from penstock.records.build import build_batch
from penstock.testing.processes import free_port
from tests.clients.admin import create_topic
from tests.clients.forgetful_proxy import ForgetfulProxy
from tests.conftest import StartBroker
from tests.mirror.mirrors import read

PARTITIONS = 2
BATCHES = 60


def batch(number: int) -> Outgoing:
    return Outgoing(build_batch([(None, b"%d" % number, (), 1_700_000_000_000)] * 2), 2, 0, ())


@pytest.mark.parametrize("transactional_id", [None, "writer"])
def test_lost_answers_lead_to_no_record_twice(
    start_broker: StartBroker, transactional_id: str | None
) -> None:
    proxy_port = free_port()
    address = f"127.0.0.1:{proxy_port}"
    broker = start_broker(options={"advertised.listeners": f"PLAINTEXT://{address}"})
    proxy = ForgetfulProxy(port=proxy_port, broker_port=broker.port, passed_between=3, losses=5)
    writer = BatchWriter(client_options(address), transactional_id=transactional_id)
    try:
        create_topic(address, "orders", partitions=PARTITIONS)
        writer.open()
        writer.begin()
        sendings = [
            Sending(TopicPartition("orders", number % PARTITIONS), batch(number)) for number in range(BATCHES)
        ]
        for start in range(0, BATCHES, 20):
            writer.write(sendings[start : start + 20])
        if transactional_id is not None:
            writer.end(is_commit=True)
        assert proxy.lost_answers == 5
        assert [one.base_offset for one in sendings] == [
            2 * (number // PARTITIONS) for number in range(BATCHES)
        ]
        found = read(address, "orders")
    finally:
        writer.close()
        proxy.close()
    for partition in range(PARTITIONS):
        wanted = [number for number in range(BATCHES) if number % PARTITIONS == partition for _ in range(2)]
        assert [int(one.value or b"") for one in found[partition]] == wanted


def test_what_is_not_committed_is_not_there(start_broker: StartBroker) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "orders")
    place = TopicPartition("orders", 0)
    first = BatchWriter(client_options(broker.bootstrap), transactional_id="w")
    second = BatchWriter(client_options(broker.bootstrap), transactional_id="w")
    try:
        first.open()
        first.begin()
        first.write([Sending(place, batch(1))])
        second.open()  # whoever wrote before cannot any more, and what was open is taken back
        second.begin()
        second.write([Sending(place, batch(2))])
        second.end(is_commit=True)
        with pytest.raises(Exception, match="another task uses w"):
            first.end(is_commit=True)
    finally:
        first.close()
        second.close()
    assert [one.value for one in read(broker.bootstrap, "orders")[0]] == [b"2", b"2"]
