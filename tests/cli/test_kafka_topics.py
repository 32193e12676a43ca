import re
from collections.abc import Callable
from typing import Any

Kafka = Callable[..., Any]


def test_a_topic_is_created_and_listed(kafka: Kafka, topic_name: str) -> None:
    created = kafka("topics", "--create", "--topic", topic_name, "--partitions", "2")
    assert created == (f"Created topic {topic_name}.\n", "", 0)
    listed = kafka("topics", "--list")
    assert topic_name in listed.out.splitlines()
    assert listed.out.splitlines() == sorted(listed.out.splitlines())


def test_a_topic_is_described_with_its_settings_and_partitions(kafka: Kafka, topic_name: str) -> None:
    kafka(
        "topics", "--create", "--topic", topic_name, "--partitions", "2", "--config", "retention.ms=3600000"
    )
    described = kafka("topics", "--describe", "--topic", topic_name)
    text = re.sub(r"TopicId: \S{22}", "TopicId: ID", described.out)
    text = text.replace("min.insync.replicas=1,", "")
    assert text == (
        f"Topic: {topic_name}\tTopicId: ID\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=3600000\n"
        f"\tTopic: {topic_name}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
        f"\tTopic: {topic_name}\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
    )
    assert (described.err, described.code) == ("", 0)


def test_a_topic_is_found_by_its_id(kafka: Kafka, topic_name: str) -> None:
    kafka("topics", "--create", "--topic", topic_name)
    by_name = kafka("topics", "--describe", "--topic", topic_name)
    topic_id = re.search(r"TopicId: (\S+)", by_name.out)
    assert topic_id is not None
    assert kafka("topics", "--describe", "--topic-id", topic_id[1]) == by_name


def test_a_topic_that_is_there_is_not_created_again(kafka: Kafka, topic_name: str) -> None:
    kafka("topics", "--create", "--topic", topic_name)
    again = kafka("topics", "--create", "--topic", topic_name)
    assert again == (f"Error while executing topic command : Topic '{topic_name}' already exists.\n", "", 1)
    assert kafka("topics", "--create", "--topic", topic_name, "--if-not-exists") == ("", "", 0)


def test_a_name_with_a_period_is_warned_about(kafka: Kafka, topic_name: str) -> None:
    created = kafka("topics", "--create", "--topic", f"my.{topic_name}")
    warning, done = created.out.splitlines()
    assert warning.startswith("WARNING: Due to limitations in metric names, topics with a period ('.')")
    assert done == f"Created topic my.{topic_name}."


def test_a_missing_topic_is_told_so(kafka: Kafka) -> None:
    expected = ("Error while executing topic command : Topic 'nope' does not exist as expected\n", "", 1)
    assert kafka("topics", "--describe", "--topic", "nope") == expected
    assert kafka("topics", "--delete", "--topic", "nope") == expected
    assert kafka("topics", "--delete", "--topic", "nope", "--if-exists") == ("", "", 0)


def test_partitions_are_added_and_never_taken_away(kafka: Kafka, topic_name: str) -> None:
    kafka("topics", "--create", "--topic", topic_name, "--partitions", "2")
    assert kafka("topics", "--alter", "--topic", topic_name, "--partitions", "4") == ("", "", 0)
    fewer = kafka("topics", "--alter", "--topic", topic_name, "--partitions", "1")
    reason = f"The topic {topic_name} currently has 4 partition(s); 1 would not be an increase."
    assert fewer == (f"Error while executing topic command : {reason}\n", "", 1)


def test_a_deleted_topic_is_gone(kafka: Kafka, topic_name: str) -> None:
    kafka("topics", "--create", "--topic", topic_name)
    assert kafka("topics", "--delete", "--topic", topic_name) == ("", "", 0)
    assert topic_name not in kafka("topics", "--list").out.splitlines()


def test_the_broker_s_reasons_are_shown_in_its_words(kafka: Kafka) -> None:
    bad_config = kafka("topics", "--create", "--topic", "t", "--config", "foo=1")
    assert bad_config == ("Error while executing topic command : Unknown topic config name: foo\n", "", 1)
    bad_name = kafka("topics", "--create", "--topic", "a/b")
    assert bad_name.out == (
        "Error while executing topic command : Topic name is invalid: 'a/b' contains one or more characters other than "
        "ASCII alphanumerics, '.', '_' and '-'\n"
    )


def test_bad_values_are_refused_before_anything_is_sent(kafka: Kafka) -> None:
    def refused(*words: str) -> str:
        done = kafka("topics", "--create", "--topic", "t", *words)
        assert (done.err, done.code) == ("", 1)
        return str(done.out).removeprefix("Error while executing topic command : ").rstrip("\n")

    assert refused("--partitions", "0") == "The partitions must be greater than 0"
    assert refused("--partitions", "x") == "Cannot parse argument 'x' of option partitions"
    assert (
        refused("--replication-factor", "0") == "The replication factor must be between 1 and 32767 inclusive"
    )
    assert refused("--replica-assignment", "1:2,1") == "Partition 1 has different replication factor: [1]"
    assert (
        refused("--replica-assignment", "1:1")
        == "Partition replica lists may not contain duplicate entries: 1"
    )
    assert "must be in the format" in refused("--config", "foo")


def test_options_that_do_not_go_together_are_explained_above_the_help(run: Kafka) -> None:
    done = run("kafka-topics", "--bootstrap-server", "localhost:1", "--list", "--partitions", "3")
    first, second, *_, last = done.err.splitlines()
    assert first == 'Option "[partitions]" can\'t be used with option "[list]"'
    assert second.startswith("Option ")
    assert last.startswith("  kafka-topics --bootstrap-server")
    assert (done.out, done.code) == ("", 1)


def test_exactly_one_action_is_wanted(run: Kafka) -> None:
    done = run("kafka-topics", "--bootstrap-server", "localhost:1")
    assert done.err.splitlines()[0] == (
        "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
    )
    assert done.code == 1


def test_a_zookeeper_that_is_not_there_is_told_in_one_line(run: Kafka) -> None:
    done = run("kafka-topics", "--zookeeper", "127.0.0.1:1", "--list")
    warning, error = done.err.splitlines()
    assert "Use --bootstrap-server instead" in warning
    assert error == "kafka-topics: ZooKeeper at 127.0.0.1:1 does not answer within 6 s: is it running?"
    assert done.code == 1
