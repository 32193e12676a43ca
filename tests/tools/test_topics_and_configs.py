"""kafka-topics, kafka-configs and the other tools that look at a cluster or change it, as Apache Kafka ships them."""

import json
import re
from pathlib import Path

from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.apis import APIS
from tests.clients.admin import create_topic
from tests.clients.confluent_driver import ConfluentDriver
from tests.clients.driver import Record, produce
from tests.tools.conftest import Tool


def test_kafka_topics_makes_describes_grows_lists_and_deletes(tool: Tool, topic_name: str) -> None:
    created = tool(
        "TopicCommand",
        "--create",
        "--topic",
        topic_name,
        "--partitions",
        "2",
        "--config",
        "retention.ms=1000",
    )
    assert f"Created topic {topic_name}." in created.stdout
    again = tool("TopicCommand", "--create", "--topic", topic_name, check=False)
    assert again.returncode == 1
    assert f"Topic '{topic_name}' already exists." in again.stdout
    tool("TopicCommand", "--create", "--topic", topic_name, "--if-not-exists")
    tool("TopicCommand", "--alter", "--topic", topic_name, "--partitions", "3")
    described = tool("TopicCommand", "--describe", "--topic", topic_name).stdout.splitlines()
    assert re.fullmatch(
        rf"Topic: {topic_name}\tTopicId: [\w-]{{22}}\tPartitionCount: 3\tReplicationFactor: 1\t"
        r"Configs: retention\.ms=1000",
        described[0],
    )
    assert [line.split("\t")[2] for line in described[1:]] == ["Partition: 0", "Partition: 1", "Partition: 2"]
    assert all("Leader: 1\tReplicas: 1\tIsr: 1" in line for line in described[1:])
    tool("TopicCommand", "--delete", "--topic", topic_name)
    assert topic_name not in tool("TopicCommand", "--list").stdout.split()


def test_kafka_topics_says_why_a_topic_is_refused(tool: Tool, topic_name: str) -> None:
    name = tool("TopicCommand", "--create", "--topic", "a/b", check=False)
    assert name.returncode == 1
    assert "InvalidTopicException" in name.stderr
    assert (
        "Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        in name.stdout
    )
    replicas = tool(
        "TopicCommand", "--create", "--topic", topic_name, "--replication-factor", "2", check=False
    )
    assert replicas.returncode == 1
    assert "InvalidReplicationFactorException" in replicas.stderr


def test_kafka_configs_changes_and_describes_topics_and_brokers(
    broker: PenstockBroker, tool: Tool, topic_name: str
) -> None:
    create_topic(broker.bootstrap, topic_name)
    topic = ("--entity-type", "topics", "--entity-name", topic_name)
    changes = "cleanup.policy=[compact,delete],retention.ms=5000"
    tool("kafka.admin.ConfigCommand", *topic, "--alter", "--add-config", changes)
    tool("kafka.admin.ConfigCommand", *topic, "--alter", "--delete-config", "retention.ms")
    described = tool("kafka.admin.ConfigCommand", *topic, "--describe").stdout
    assert "cleanup.policy=compact,delete sensitive=false" in described
    assert "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete" in described
    assert "retention.ms" not in described
    refused = tool(
        "kafka.admin.ConfigCommand", *topic, "--alter", "--add-config", "segment.bytes=many", check=False
    )
    assert (
        "InvalidConfigurationException: Invalid value many for configuration segment.bytes: Not a number of type INT"
        in refused.stderr
    )
    brokers = tool("kafka.admin.ConfigCommand", "--entity-type", "brokers", "--describe", "--all").stdout
    assert f"log.dirs={broker.data_dir} " in brokers
    everyone = ("--entity-type", "brokers", "--entity-default")
    change = "log.cleaner.threads=2"
    tool("kafka.admin.ConfigCommand", *everyone, "--alter", "--add-config", change)
    assert f"{change} " in tool("kafka.admin.ConfigCommand", *everyone, "--describe").stdout
    tool("kafka.admin.ConfigCommand", *everyone, "--alter", "--delete-config", "log.cleaner.threads")


def test_offsets_records_and_directories_are_told_apart(
    broker: PenstockBroker, tool: Tool, topic_name: str, tmp_path: Path
) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=2)
    base_ms = 1_700_000_000_000
    times = [0, 10, 50, 20, 50]  # the largest one twice: its first record counts
    produce(
        ConfluentDriver(),
        broker.bootstrap,
        topic_name,
        [Record(b"v", timestamp_ms=base_ms + shift) for shift in times],
    )
    to_delete = tmp_path / "delete.json"
    to_delete.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic_name, "partition": 0, "offset": 1}]})
    )
    deleted = tool("DeleteRecordsCommand", "--offset-json-file", str(to_delete)).stdout
    assert f"partition: {topic_name}-0\tlow_watermark: 1" in deleted

    def offsets(time: str | int) -> dict[str, str]:
        lines = tool("GetOffsetShell", "--topic", topic_name, "--time", str(time)).stdout.split()
        return {line.split(":")[1]: line.split(":")[2] for line in lines}

    assert offsets(-1) == offsets("latest") == {"0": "5", "1": "0"}
    assert offsets(-2) == {"0": "1", "1": "0"}
    assert offsets(-3) == {"0": "2"}  # nothing in partition 1 has a timestamp
    assert offsets(-4) == {"0": "1", "1": "0"}
    assert offsets(-5) == offsets(-6) == {}  # there is no tier
    assert offsets(base_ms + 11) == {"0": "2"}

    directories = tool("LogDirsCommand", "--describe", "--topic-list", topic_name).stdout
    described = json.loads(directories[directories.index("{") :])
    (directory,) = described["brokers"][0]["logDirs"]
    assert directory["error"] is None
    assert directory["logDir"] == str(broker.data_dir)
    size = (broker.data_dir / f"{topic_name}-0" / f"{0:020d}.log").stat().st_size
    assert {each["partition"]: each["size"] for each in directory["partitions"]} == {
        f"{topic_name}-0": size,
        f"{topic_name}-1": 0,
    }


def test_kafka_broker_api_versions_can_use_everything_the_broker_offers(tool: Tool) -> None:
    said = tool("BrokerApiVersionsCommand").stdout
    offered = dict(re.findall(r"\w+\((\d+)\): (\d+(?: to \d+)?) \[usable: \d+\]", said))
    assert offered == {
        str(key): (
            str(api.max_version)
            if api.advertised_min_version == api.max_version
            else f"{api.advertised_min_version} to {api.max_version}"
        )
        for key, api in APIS.items()
        if not api.between_brokers
    }


def test_kafka_leader_election_finds_the_right_replica_elected_already(
    broker: PenstockBroker, tool: Tool, topic_name: str
) -> None:
    create_topic(broker.bootstrap, topic_name)
    one = ("--topic", topic_name, "--partition", "0")
    said = tool("LeaderElectionCommand", "--election-type", "preferred", *one).stdout
    assert f"Valid replica already elected for partitions {topic_name}-0" in said
    said = tool("LeaderElectionCommand", "--election-type", "unclean", *one).stdout
    assert f"Valid replica already elected for partitions {topic_name}-0" in said


def test_kafka_features_upgrades_to_what_is_there_and_refuses_the_rest(tool: Tool) -> None:
    described = tool("FeatureCommand", "describe").stdout
    assert re.search(r"Feature: group.version\s+SupportedMinVersion: 0\s+SupportedMaxVersion: 1", described)
    same = tool("FeatureCommand", "upgrade", "--feature", "transaction.version=2")
    assert "transaction.version was upgraded to 2." in same.stdout
    for words, why in (
        (("upgrade", "--feature", "transaction.version=9"), "Local controller 1 only supports versions 0-2"),
        (("upgrade", "--feature", "nonsense=1"), "Local controller 1 does not support this feature."),
        (("downgrade", "--feature", "group.version=0"), "group.version cannot be lowered from 1 to 0"),
    ):
        refused = tool("FeatureCommand", *words, check=False)
        assert why in refused.stdout
        assert refused.returncode == 1
