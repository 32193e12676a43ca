import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker

Kafka = Callable[..., Any]


@pytest.fixture
def topic(kafka: Kafka, topic_name: str) -> str:
    """Two partitions; four records in the second."""
    assert kafka("topics", "--create", "--topic", topic_name, "--partitions", "2").code == 0
    produced = kafka(
        "console-producer",
        "--topic",
        topic_name,
        "--request-required-acks",
        "1",
        "--reader-property",
        "parse.key=true",
        stdin="k1\ta\nk1\tb\nk1\tc\nk1\td\n",
    )
    assert produced.code == 0
    return topic_name


def test_offsets_at_the_end_the_beginning_and_the_newest_record(kafka: Kafka, topic: str) -> None:
    assert kafka("get-offsets", "--topic", topic) == (f"{topic}:0:0\n{topic}:1:4\n", "", 0)
    assert kafka("get-offsets", "--topic", topic, "--time", "earliest").out == f"{topic}:0:0\n{topic}:1:0\n"
    assert kafka("get-offsets", "--topic-partitions", f"{topic}:1-2", "--time", "-1").out == f"{topic}:1:4\n"
    newest = kafka("get-offsets", "--topic", topic, "--time", "max-timestamp").out
    assert newest.startswith(f"{topic}:1:")


def test_offsets_of_the_tiers_are_asked_over_the_wire(kafka: Kafka, topic: str) -> None:
    assert (
        kafka("get-offsets", "--topic", topic, "--time", "earliest-local").out
        == f"{topic}:0:0\n{topic}:1:0\n"
    )
    assert kafka("get-offsets", "--topic", topic, "--time", "-5") == ("", "", 0)


def test_an_offset_request_that_matches_nothing_is_an_error(kafka: Kafka) -> None:
    done = kafka("get-offsets", "--topic", "nope")
    assert done == (
        "",
        "Error occurred: Could not match any topic-partitions with the specified filters\n",
        1,
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--time", "foo"], "Malformed time argument foo. Please use -1 or latest /"),
        (
            ["--partitions", "a"],
            "--partitions expects a comma separated list of numeric partition ids, but received: a",
        ),
        (
            ["--topic", "a", "--topic-partitions", "b:0"],
            "--topic-partitions cannot be used with --topic or --partitions",
        ),
        (["--topic-partitions", "a:x"], "Invalid rule specification: a:x"),
    ],
)
def test_a_wrong_offset_request_is_one_line(run: Kafka, words: list[str], reason: str) -> None:
    done = run("kafka-get-offsets", "--bootstrap-server", "localhost:1", *words)
    assert done.err.startswith(f"Error occurred: {reason}")
    assert done.err.count("\n") == 1
    assert done.code == 1


def test_records_are_deleted_up_to_an_offset(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "delete.json"
    entries = [{"topic": topic, "partition": 1, "offset": 2}, {"topic": topic, "partition": 0, "offset": 9}]
    file.write_text(json.dumps({"partitions": entries, "version": 1}))
    done = kafka("delete-records", "--offset-json-file", str(file))
    head, results = done.out.splitlines()[:2], set(done.out.splitlines()[2:])
    assert head == ["Executing records delete operation", "Records delete operation completed:"]
    assert results == {
        f"partition: {topic}-1\tlow_watermark: 2",
        f"partition: {topic}-0\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: "
        "The requested offset is not within the range of offsets maintained by the server.",
    }
    assert kafka("get-offsets", "--topic", topic, "--time", "-2").out == f"{topic}:0:0\n{topic}:1:2\n"


def test_minus_one_deletes_all_that_is_there(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "delete.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 1, "offset": -1}]}))
    done = kafka("delete-records", "--offset-json-file", str(file))
    assert done.out.splitlines()[-1] == f"partition: {topic}-1\tlow_watermark: 4"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x", "The input string is not a valid JSON"),
        ("{}", "Missing partitions field"),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "No such field exists: `offset`"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "offset": 1}, {"topic": "t", "partition": 0, "offset": 2}]}',
            "Offset json file contains duplicate topic partitions: t-0",
        ),
        (
            '{"partitions": [{"topic": "t", "partition": "a", "offset": 1}]}',
            "the field `partition` must be a number",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(run: Kafka, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "delete.json"
    file.write_text(text)
    done = run("kafka-delete-records", "--bootstrap-server", "localhost:1", "--offset-json-file", str(file))
    assert done.err.startswith(reason)
    assert done.err.count("\n") == 1
    assert done.code == 1


def test_log_dirs_are_described_in_json(kafka: Kafka, broker: PenstockBroker, topic: str) -> None:
    done = kafka("log-dirs", "--describe", "--topic-list", topic)
    first, second, text = done.out.splitlines()
    assert first == "Querying brokers for log directories information"
    assert second == "Received log directory information from brokers 1"
    assert text.startswith('{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"')
    (log_dir,) = json.loads(text)["brokers"][0]["logDirs"]
    assert [one["partition"] for one in log_dir["partitions"]] == [f"{topic}-0", f"{topic}-1"]
    assert log_dir["partitions"][0] == {
        "partition": f"{topic}-0",
        "size": 0,
        "offsetLag": 0,
        "isFuture": False,
    }
    assert log_dir["partitions"][1]["size"] > 0
    assert (log_dir["error"], log_dir["logDir"]) == (None, str(broker.data_dir))


def test_log_dirs_of_a_broker_that_is_not_there(kafka: Kafka) -> None:
    done = kafka("log-dirs", "--describe", "--broker-list", "1,7")
    reason = "ERROR: The given brokers do not exist from --broker-list: 7. Current existent brokers: 1"
    assert done == ("", f"{reason}\n", 1)


def test_api_versions_are_listed_by_key(kafka: Kafka, broker: PenstockBroker) -> None:
    done = kafka("broker-api-versions")
    first, *lines, last = done.out.splitlines()
    assert first == f"{broker.bootstrap} (id: 1 rack: null isFenced: false) -> ("
    assert last == ")"
    assert lines[0] == "\tProduce(0): 0 to 13 [usable: 13],"
    assert "\tOffsetDelete(47): 0 [usable: 0]," in lines
    assert "\tShareFetch(78): UNSUPPORTED," in lines
    assert not lines[-1].endswith(",")
