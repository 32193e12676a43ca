"""Topics and configurations through the admin clients: made, described, changed, refused, deleted."""

from collections.abc import Iterator

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from kafka.admin import AlterConfigOp
from kafka.admin import ConfigResource as PythonConfigResource

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import admin_client
from tests.clients.admin_drivers import ADMIN_DRIVERS, AdminDriver, KafkaPythonAdmin
from tests.clients.driver import WAIT_S, Driver, Record, Refused, produce, wait_until
from tests.conftest import MakeTopic

UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_OUT_OF_RANGE = 1
INVALID_TOPIC_EXCEPTION = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_CONFIG = 40
ELECTION_NOT_NEEDED = 84


@pytest.fixture(params=["confluent", "aiokafka", "kafka_python"])
def admin(request: pytest.FixtureRequest, broker: PenstockBroker) -> Iterator[AdminDriver]:
    running = ADMIN_DRIVERS[request.param](broker.bootstrap)
    yield running
    running.close()


def refusal_code(work: object, *args: object, **options: object) -> int:
    assert callable(work)
    with pytest.raises(Refused) as refusal:
        work(*args, **options)
    return refusal.value.code


def test_a_topic_is_made_grown_and_deleted(admin: AdminDriver, topic_name: str) -> None:
    admin.create(topic_name, partitions=2)
    assert admin.topics()[topic_name] == 2
    assert refusal_code(admin.create, topic_name) == TOPIC_ALREADY_EXISTS
    admin.grow(topic_name, 5)
    assert admin.topics()[topic_name] == 5
    assert refusal_code(admin.grow, topic_name, 5) == INVALID_PARTITIONS
    assert refusal_code(admin.grow, topic_name, 4) == INVALID_PARTITIONS
    admin.delete(topic_name)
    wait_until(lambda: topic_name not in admin.topics(), "the topic is gone")
    assert refusal_code(admin.delete, topic_name) == UNKNOWN_TOPIC_OR_PARTITION
    assert refusal_code(admin.grow, topic_name, 6) == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["a/b", "x" * 250, ".", "..", "", "white space", "naïve"])
def test_a_topic_with_a_name_that_no_directory_could_have_is_refused(admin: AdminDriver, name: str) -> None:
    try:
        code = refusal_code(admin.create, name)
    except ValueError:
        assert name == ""  # librdkafka's own check
    else:
        assert code == INVALID_TOPIC_EXCEPTION


def test_names_that_differ_by_dot_and_underscore_only_collide(admin: AdminDriver, topic_name: str) -> None:
    admin.create(f"{topic_name}.a")
    assert refusal_code(admin.create, f"{topic_name}_a") == INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "a week"),
        ("segment.bytes", "12.5"),
        ("cleanup.policy", "shred"),
        ("compression.type", "rar"),
        ("min.insync.replicas", "0"),
        ("unclean.leader.election.enable", "perhaps"),
        ("no.such.option", "1"),
    ],
)
def test_a_configuration_that_does_not_parse_is_refused(
    admin: AdminDriver, make_topic: MakeTopic, topic_name: str, name: str, value: str
) -> None:
    assert refusal_code(admin.create, topic_name, configs={name: value}) == INVALID_CONFIG
    assert topic_name not in admin.topics()
    existing = make_topic()
    before = admin.configs(existing)
    assert refusal_code(admin.set_configs, existing, {name: value}) == INVALID_CONFIG
    assert admin.configs(existing) == before


def test_configurations_are_described_with_the_defaults_and_changed(
    admin: AdminDriver, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"retention.ms": "3600000"})
    configs = admin.configs(topic)
    assert configs["retention.ms"] == "3600000"
    assert configs["cleanup.policy"] == "delete"
    assert configs["max.message.bytes"] == "1048588"
    admin.set_configs(topic, {"retention.ms": "7200000", "max.message.bytes": "2000"})
    changed = admin.configs(topic)
    assert (changed["retention.ms"], changed["max.message.bytes"]) == ("7200000", "2000")


def test_records_before_an_offset_are_deleted(
    admin: AdminDriver, broker: PenstockBroker, make_topic: MakeTopic, drivers: dict[str, Driver]
) -> None:
    topic = make_topic()
    produce(drivers["confluent"], broker.bootstrap, topic, [Record(b"v")] * 10)
    assert admin.delete_records(topic, 4) == 4
    assert admin.delete_records(topic, 2) == 4  # what is gone stays gone
    assert refusal_code(admin.delete_records, topic, 11) == OFFSET_OUT_OF_RANGE
    assert admin.delete_records(topic, -1) == 10


def test_the_cluster_is_one_broker_with_an_identity(admin: AdminDriver, broker: PenstockBroker) -> None:
    cluster_id, brokers = admin.cluster()
    meta = (broker.data_dir / "meta.properties").read_text()
    assert f"cluster.id={cluster_id}" in meta
    assert len(brokers) == 1


def test_librdkafka_changes_single_entries_of_a_list(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"retention.ms": "1000"})
    admin = admin_client(broker.bootstrap)

    def change(name: str, value: str | None, operation: AlterConfigOpType) -> None:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(WAIT_S)

    def described(name: str) -> ConfigEntry:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        return admin.describe_configs([resource])[resource].result(WAIT_S)[name]

    change("cleanup.policy", "compact", AlterConfigOpType.APPEND)
    assert described("cleanup.policy").value == "delete,compact"
    assert described("cleanup.policy").source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert described("retention.ms").value == "1000"
    change("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)
    assert described("cleanup.policy").value == "compact"
    change("cleanup.policy", None, AlterConfigOpType.DELETE)
    assert described("cleanup.policy").value == "delete"
    assert described("cleanup.policy").source == ConfigSource.DEFAULT_CONFIG.value
    with pytest.raises(KafkaException) as refusal:
        change("retention.ms", "5", AlterConfigOpType.APPEND)  # not a list
    assert refusal.value.args[0].code() == INVALID_CONFIG


def test_kafka_python_changes_single_entries_of_a_list(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    admin = KafkaPythonAdmin(broker.bootstrap)
    try:
        resource = PythonConfigResource("TOPIC", topic, {"cleanup.policy": (AlterConfigOp.APPEND, "compact")})
        admin.client.alter_configs([resource])
        assert admin.configs(topic)["cleanup.policy"] == "delete,compact"
        admin.client.reset_configs([PythonConfigResource("TOPIC", topic, ["cleanup.policy"])])
        assert admin.configs(topic)["cleanup.policy"] == "delete"
    finally:
        admin.close()


def test_the_broker_describes_its_own_configuration(broker: PenstockBroker) -> None:
    admin = admin_client(broker.bootstrap)
    (node,) = admin.describe_cluster().result(WAIT_S).nodes
    resource = ConfigResource(ResourceType.BROKER, str(node.id))
    entries = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert entries["log.dirs"].value == str(broker.data_dir)
    assert entries["group.initial.rebalance.delay.ms"].value == "0"
    assert entries["group.initial.rebalance.delay.ms"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert entries["num.partitions"].source == ConfigSource.DEFAULT_CONFIG.value


def test_log_directories_show_the_size_of_each_partition(
    broker: PenstockBroker, make_topic: MakeTopic, drivers: dict[str, Driver]
) -> None:
    topic = make_topic(partitions=2)
    produce(drivers["confluent"], broker.bootstrap, topic, [Record(bytes(5000), partition=1)])
    admin = KafkaPythonAdmin(broker.bootstrap)
    try:
        (answer,) = admin.client.describe_log_dirs({topic: [0, 1]})
    finally:
        admin.close()
    (directory,) = answer["log_dirs"]
    assert directory["error_code"] == 0
    assert directory["log_dir"] == str(broker.data_dir)
    sizes = {each["partition_index"]: each["partition_size"] for each in directory["topics"][0]["partitions"]}
    assert sizes == {
        index: (broker.data_dir / f"{topic}-{index}" / f"{0:020d}.log").stat().st_size for index in (0, 1)
    }
    assert sizes[1] > 5000


def test_an_election_is_not_needed_where_the_preferred_replica_leads(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    where = TopicPartition(topic, 0)
    admin = admin_client(broker.bootstrap)
    error = admin.elect_leaders(ElectionType.PREFERRED, [where]).result(WAIT_S)[where]
    assert error is not None
    assert error.code() == ELECTION_NOT_NEEDED


def test_more_replicas_than_brokers_are_refused(broker: PenstockBroker, topic_name: str) -> None:
    admin = KafkaPythonAdmin(broker.bootstrap)
    try:
        with pytest.raises(Exception, match=r"\[Error 38\] InvalidReplicationFactorError"):
            admin.client.create_topics({topic_name: {"num_partitions": 1, "replication_factor": 3}})
        answer = admin.client.create_topics({topic_name: {"num_partitions": 3}}, validate_only=True)
        assert answer["topics"][0]["error_code"] == 0
        assert topic_name not in admin.topics()
    finally:
        admin.close()
