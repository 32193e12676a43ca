"""Apache Kafka's Java clients, through the console, performance and verifiable tools."""

import json
import re

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from simulation.apache.resident_tools import resident_tool
from tests.clients.admin import create_topic, stored_codecs
from tests.tools.conftest import TOOLS, Tool

CLASSIC = ("--command-property", "group.protocol=classic")
UNTIL_SILENT = ("--timeout-ms", "20000")


def test_the_console_consumer_prints_what_the_console_producer_read_and_its_group_goes_on(
    broker: PenstockBroker, tool: Tool, topic_name: str
) -> None:
    create_topic(broker.bootstrap, topic_name)
    properties = [
        "parse.key=true", "key.separator=:", "parse.headers=true", "headers.delimiter=|", "null.marker=NULL",
    ]  # fmt: skip
    reader = [part for each in properties for part in ("--reader-property", each)]
    tool("ConsoleProducer", "--topic", topic_name, *reader, stdin="h:1|a:one\nh:2,h:3|b:two\nh:4|NULL:NULL\n")

    def consumed(count: int, *more: str) -> list[str]:
        said = tool(
            "consumer.ConsoleConsumer",
            *("--topic", topic_name, "--group", f"group-{topic_name}", "--max-messages", str(count)),
            *CLASSIC,
            *UNTIL_SILENT,
            *more,
        )
        assert f"Processed a total of {count} messages" in said.stderr
        return said.stdout.splitlines()

    printing = ["print.key=true", "print.headers=true", "print.offset=true", "null.literal=NULL"]
    formatter = [part for each in printing for part in ("--formatter-property", each)]
    assert consumed(3, "--from-beginning", *formatter) == [
        "Offset:0\th:1\ta\tone",
        "Offset:1\th:2,h:3\tb\ttwo",
        "Offset:2\th:4\tNULL\tNULL",
    ]
    tool("ConsoleProducer", "--topic", topic_name, stdin="three\n")
    assert consumed(1) == ["three"]

    groups = tool(
        "consumer.group.ConsumerGroupCommand", "--describe", "--group", f"group-{topic_name}"
    ).stdout
    row = next(line.split() for line in groups.splitlines() if topic_name in line and "GROUP" not in line)
    assert row[1:6] == [topic_name, "0", "4", "4", "0"]  # topic, partition, committed, end, lag


@pytest.mark.parametrize(
    ("codec", "acks", "idempotent"), [("lz4", "all", "true"), ("none", "1", "false"), ("zstd", "all", "true")]
)
def test_the_performance_tools_send_and_read_all_they_were_asked_to(
    broker: PenstockBroker, topic_name: str, codec: str, acks: str, idempotent: str
) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=6)
    sent = resident_tool(
        f"{TOOLS}.ProducerPerformance",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic_name, "--num-records", "30000"),
        *("--record-size", "200", "--throughput", "-1"),
        *(
            "--command-property",
            f"acks={acks}",
            f"enable.idempotence={idempotent}",
            f"compression.type={codec}",
        ),
        timeout_s=60.0,
    )
    assert re.search(r"^30000 records sent", sent.stdout, re.MULTILINE)
    assert sent.stderr == ""
    codecs = [stored_codecs(broker.data_dir, topic_name, index) for index in range(6)]
    assert set().union(*codecs) == {codec}
    read = resident_tool(
        f"{TOOLS}.ConsumerPerformance",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic_name, "--num-records", "30000"),
        *("--timeout", "20000"),
        timeout_s=60.0,
    )
    assert "WARNING" not in read.stdout
    names, values = (line.split(", ") for line in read.stdout.splitlines()[:2])
    assert int(dict(zip(names, values, strict=True))["data.consumed.in.nMsg"]) >= 30_000


def test_the_verifiable_consumer_sees_what_the_verifiable_producer_was_told_is_stored(
    tool: Tool, broker: PenstockBroker, topic_name: str
) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=3)
    topic = ("--topic", topic_name, "--max-messages", "2000")
    produced = [
        json.loads(line) for line in tool("VerifiableProducer", *topic, "--acks", "-1").stdout.splitlines()
    ]
    stored = {
        (each["partition"], each["offset"], each["value"])
        for each in produced
        if each["name"] == "producer_send_success"
    }
    assert len(stored) == 2000
    consumed = [
        json.loads(line)
        for line in tool(
            "VerifiableConsumer",
            *topic,
            *("--group-id", f"group-{topic_name}", "--reset-policy", "earliest", "--verbose"),
        ).stdout.splitlines()
    ]
    seen = {
        (each["partition"], each["offset"], each["value"])
        for each in consumed
        if each["name"] == "record_data"
    }
    assert seen == stored
    commits = [each for each in consumed if each["name"] == "offsets_committed"]
    assert commits
    assert all(each["success"] for each in commits)
