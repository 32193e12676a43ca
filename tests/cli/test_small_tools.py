import json
import re
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


def test_the_cluster_has_an_id_and_endpoints(kafka: Kafka, broker: PenstockBroker) -> None:
    done = kafka("cluster", "cluster-id")
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", done.out)
    assert (done.err, done.code) == ("", 0)
    host, _, port = broker.bootstrap.rpartition(":")
    listed = kafka("cluster", "list-endpoints", "--include-fenced-brokers")
    width = len(host)
    assert listed.out == (
        f"ID         {'HOST':<{width}} PORT       RACK       STATE      ENDPOINT_TYPE  \n"
        f"1          {host} {port:<10} null       unfenced   broker         \n"
    )
    assert kafka("cluster", "list-endpoints") == listed


def test_a_cluster_without_the_api_says_so_as_kafka_s_tool_does(kafka: Kafka) -> None:
    done = kafka("cluster", "unregister", "--id", "1")
    assert done == ("The target cluster does not support the broker unregistration API.\n", "", 0)


def test_the_cluster_tool_takes_its_older_option(kafka: Kafka, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=PLAINTEXT\n")
    done = kafka("cluster", "cluster-id", "--config", str(file))
    first, second = done.out.splitlines()
    assert first == (
        "Option --config has been deprecated and will be removed in a future version. Use --command-config instead."
    )
    assert second.startswith("Cluster ID: ")
    both = kafka("cluster", "cluster-id", "--config", str(file), "--command-config", str(file))
    assert both.err.startswith("Options --command-config and --config cannot be specified together.\n")
    assert both.code == 1


@pytest.mark.parametrize(
    ("tool", "words", "reason"),
    [
        ("cluster", [], "too few arguments: name a command"),
        ("cluster", ["id"], "invalid choice: 'id' (choose from cluster-id, list-endpoints, unregister)"),
        ("cluster", ["unregister"], "argument --id is required"),
        (
            "features",
            ["raise"],
            "invalid choice: 'raise' (choose from describe, upgrade, downgrade, disable)",
        ),
        ("features", ["upgrade"], "argument --feature is required"),
    ],
)
def test_a_command_that_is_incomplete_is_explained_above_the_help(
    run: Kafka, tool: str, words: list[str], reason: str
) -> None:
    done = run(f"kafka-{tool}", "--bootstrap-server", "localhost:1", *words)
    assert done.err.startswith(f"{reason}\n")
    assert "Example" in done.err
    assert (done.out, done.code) == ("", 1)


def test_a_broker_s_id_is_a_number(run: Kafka) -> None:
    done = run("kafka-cluster", "--bootstrap-server", "localhost:1", "unregister", "--id", "one")
    assert done == ("", "Cannot parse argument 'one' of option id\n", 1)


@pytest.mark.parametrize("words", [["describe"], []])
def test_features_are_described(kafka: Kafka, words: list[str]) -> None:
    done = kafka("features", *words)
    assert done.out == "".join(
        f"Feature: {name:<40}  SupportedMinVersion: 0                SupportedMaxVersion: {level:<15}  "
        f"FinalizedVersionLevel: {level:<15}  Epoch: 0\n"
        for name, level in (("group.version", 1), ("transaction.version", 2))
    )
    assert (done.err, done.code) == ("", 0)


def test_a_feature_is_confirmed_at_the_level_that_it_has(kafka: Kafka) -> None:
    done = kafka("features", "upgrade", "--feature", "group.version=1", "--feature", "transaction.version=2")
    assert done == ("group.version was upgraded to 1.\ntransaction.version was upgraded to 2.\n", "", 0)
    dry = kafka("features", "upgrade", "--feature", "group.version=1", "--dry-run")
    assert dry == ("group.version can be upgraded to 1.\n", "", 0)


def test_one_wrong_feature_fails_them_all(kafka: Kafka) -> None:
    done = kafka("features", "upgrade", "--feature", "transaction.version=2", "--feature", "group.version=9")
    reason = (
        "The update failed for all features since the following feature had an error: Invalid update version 9 for "
        "feature group.version. Local controller 1 only supports versions 0-1"
    )
    assert done.out == (
        f"Could not upgrade group.version to 9. {reason}\nCould not upgrade transaction.version to 2. {reason}\n"
    )
    assert (done.err, done.code) == ("2 out of 2 operation(s) failed.\n", 1)


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["downgrade", "--feature", "group.version=0"], "Could not downgrade group.version to 0. "),
        (
            ["downgrade", "--feature", "group.version=0", "--dry-run"],
            "Can not downgrade group.version to 0. ",
        ),
        (["disable", "--feature", "group.version", "--unsafe"], "Could not disable group.version. "),
    ],
)
def test_a_feature_that_cannot_be_lowered_is_told(kafka: Kafka, words: list[str], start: str) -> None:
    done = kafka("features", *words)
    assert done.out.startswith(start)
    assert done.out.endswith("group.version cannot be lowered from 1 to 0 in Penstock.\n")
    assert (done.err, done.code) == ("1 out of 1 operation(s) failed.\n", 1)


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        (["group.version"], "Can't parse feature=level string group.version: equals sign not found."),
        (["a=b"], "Can't parse feature=level string a=b: unable to parse b as a short."),
        (["a=40000"], "Can't parse feature=level string a=40000: unable to parse 40000 as a short."),
        (["a=1", "a=2"], "Feature a was specified more than once."),
    ],
)
def test_a_feature_that_is_asked_for_wrongly_is_one_line(
    run: Kafka, features: list[str], reason: str
) -> None:
    words = [word for feature in features for word in ("--feature", feature)]
    done = run("kafka-features", "--bootstrap-server", "localhost:1", "upgrade", *words)
    assert done == ("", f"kafka-features: {reason}\n", 1)
