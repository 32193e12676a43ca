"""The page about administration from Python: its programs run, one after the other."""

from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.testing.penstock_broker import PenstockBroker
from tests.docs.pages import HOW_TO, blocks

PAGE = HOW_TO / "administer-from-python.md"


def test_the_programs_of_the_page_run_one_after_the_other(broker: PenstockBroker) -> None:
    programs = blocks(PAGE.read_text(), "python")
    known: dict[str, object] = {}
    for number, program in enumerate(programs):
        exec(program.replace("localhost:9092", broker.bootstrap), known)
        if number == 1:  # the topic is there: somebody writes to it, and a group reads
            _write_and_commit(broker.bootstrap)
    described = known["described"]
    assert isinstance(described, list)
    assert described
    plan = known["plan"]
    assert [str(one) for one in plan.offsets] == ["orders-0", "orders-1", "orders-2"]  # type: ignore[attr-defined]


def _write_and_commit(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", key="k1", value="9.5", partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "billing"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()
