"""The page about topics as tables: its Python runs, with every library that it names."""

import re

import polars
import pyarrow
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.docs.pages import HOW_TO, blocks
from tests.small_registry import small_registry

PAGE = HOW_TO / "topics-as-tables.md"
REGISTRY = "http://localhost:8081"


def test_the_programs_of_the_page_run_one_after_the_other(broker: PenstockBroker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic_name, key="k1", value='{"amount": 9.5, "items": ["valve"]}')
    assert producer.flush(60) == 0
    known: dict[str, object] = {}
    programs = [program for program in blocks(PAGE.read_text(), "python") if REGISTRY not in program]
    assert len(programs) > 1
    for program in programs:
        here = program.replace(', bootstrap="localhost:9092"', "")
        here = re.sub(r'\(\s*"orders"', f'("{topic_name}", bootstrap="{broker.bootstrap}"', here)
        exec(here, known)
    frame = known["frame"]
    assert isinstance(frame, polars.DataFrame)
    assert frame["key"].to_list() == [b"k1"]


def test_values_with_a_schema_are_columns(broker: PenstockBroker, topic_name: str) -> None:
    (program,) = [each for each in blocks(PAGE.read_text(), "python") if REGISTRY in each]
    create_topic(broker.bootstrap, topic_name)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    fields = [{"name": "amount", "type": "int"}]
    with small_registry() as registry:
        schema_id = registry.add(f"{topic_name}-value", {"type": "record", "name": "Order", "fields": fields})
        producer.produce(topic_name, value=b"\0" + schema_id.to_bytes(4, "big") + b"\x0e")
        assert producer.flush(60) == 0
        here = program.replace('"orders"', f'"{topic_name}", bootstrap="{broker.bootstrap}"')
        known: dict[str, object] = {}
        exec(f"import penstock.arrow\n{here.replace(REGISTRY, registry.url)}", known)
    table = known["table"]
    assert isinstance(table, pyarrow.Table)
    assert table["value"].to_pylist() == [{"amount": 7}]
