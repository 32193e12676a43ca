"""The page about topics as tables: its Python runs, with every library that it names."""

import re

import polars
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.docs.pages import HOW_TO, blocks

PAGE = HOW_TO / "topics-as-tables.md"


def test_the_programs_of_the_page_run_one_after_the_other(broker: PenstockBroker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic_name, key="k1", value='{"amount": 9.5, "items": ["valve"]}')
    assert producer.flush(60) == 0
    known: dict[str, object] = {}
    for program in blocks(PAGE.read_text(), "python"):
        here = program.replace(', bootstrap="localhost:9092"', "")
        here = re.sub(r'\(\s*"orders"', f'("{topic_name}", bootstrap="{broker.bootstrap}"', here)
        exec(here, known)
    frame = known["frame"]
    assert isinstance(frame, polars.DataFrame)
    assert frame["key"].to_list() == [b"k1"]
