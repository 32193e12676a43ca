"""The page about logs: its Python runs, on a directory that a broker has left."""

from pathlib import Path

from confluent_kafka import Producer

from penstock.inspection.layout import LogLayout
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.docs.pages import HOW_TO, blocks

PAGE = HOW_TO / "check-a-log.md"
TORN = b"torn"


def test_the_programs_of_the_page_find_and_repair_what_is_wrong(tmp_path: Path) -> None:
    with PenstockBroker(tmp_path) as broker:
        create_topic(broker.bootstrap, "orders")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(3):
            producer.produce("orders", key=f"k{number}", value="valve")
        assert producer.flush(60) == 0
        data = broker.data_dir
    segment = Path(data) / "orders-0" / "00000000000000000000.log"
    whole = segment.read_bytes()
    segment.write_bytes(whole + TORN)
    known: dict[str, object] = {}
    for program in blocks(PAGE.read_text(), "python"):
        exec(program.replace("./data", str(data)), known)
    problems, lines, log = known["problems"], known["lines"], known["log"]
    assert isinstance(problems, list)
    assert isinstance(lines, list)
    assert isinstance(log, LogLayout)
    assert [problem.repair for problem in problems] == ["cut the tail"]
    assert segment.read_bytes() == whole
    assert lines[0] == "Log starting offset: 0"
    assert [line.partition(" key: ")[2] for line in lines if line.startswith("| ")] == [
        f"k{number} payload: valve" for number in range(3)
    ]
    assert log.end_offset == 3
