from collections.abc import Mapping

import pytest

from penstock.config.option import Option
from penstock.config.topic_options import topic_option
from penstock.controller.configs import alter_configs, expired_notifications, incremental_alter_configs
from penstock.metadata.image import BrokerRegistration, ClusterImage, ConfigsChanged, TopicCreated
from penstock.metadata.tree import Create, Delete, Set
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages import alter_configs as legacy
from penstock.wire.messages import incremental_alter_configs as incremental

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


class Rules:
    def check(self, entity_type: str, entity_name: str, overrides: Mapping[str, str]) -> None:
        if "nonsense" in overrides:
            raise ApiError(ErrorCode.INVALID_CONFIG, "Unknown topic config name: nonsense")

    def option(self, entity_type: str, name: str) -> Option | None:
        return topic_option(name)


def cluster(**overrides: str) -> ClusterImage:
    image = ClusterImage()
    image.add_broker(BrokerRegistration(1, {}))
    image.apply(TopicCreated("orders", bytes([1] * 16), ()))
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    image.apply(ConfigsChanged("topics", "orders", named))
    return image


Asked = tuple[str, int, str | None]


def resource(type: int, name: str, *configs: Asked) -> incremental.AlterConfigsResource:
    return incremental.AlterConfigsResource(
        resource_type=type,
        resource_name=name,
        configs=[
            incremental.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in configs
        ],
    )


def after(image: ClusterImage, *configs: Asked) -> Mapping[str, str]:
    asked = [resource(TOPIC, "orders", *configs)]
    decision = incremental_alter_configs(image, asked, rules=Rules(), validate_only=False)
    assert [(r.error_code, r.error_message) for r in decision.results] == [(0, None)]
    image.apply_all(decision.changes)
    return image.topic_overrides("orders")


def refusal(
    *resources: incremental.AlterConfigsResource, image: ClusterImage | None = None
) -> tuple[int, str | None]:
    decision = incremental_alter_configs(image or cluster(), resources, rules=Rules(), validate_only=False)
    assert (decision.ops, decision.changes) == ([], [])
    return decision.results[0].error_code, decision.results[0].error_message


def test_values_are_set_and_deleted_and_the_others_stay() -> None:
    image = cluster(retention_ms="1", segment_ms="2", flush_ms="3")
    altered = after(image, ("retention.ms", SET, "9"), ("segment.ms", DELETE, None), ("nothing", DELETE, ""))
    assert altered == {"retention.ms": "9", "flush.ms": "3"}


def test_lists_are_appended_to_and_subtracted_from() -> None:
    image = cluster(cleanup_policy="compact")
    assert after(image, ("cleanup.policy", APPEND, "delete"))["cleanup.policy"] == "compact,delete"
    assert after(image, ("cleanup.policy", SUBTRACT, "compact"))["cleanup.policy"] == "delete"


def test_an_append_starts_from_the_default() -> None:
    assert after(cluster(), ("cleanup.policy", APPEND, "compact"))["cleanup.policy"] == "delete,compact"


def test_a_topics_node_is_set_because_it_exists() -> None:
    decision = incremental_alter_configs(
        cluster(), [resource(TOPIC, "orders", ("a", SET, "1"))], rules=Rules(), validate_only=False
    )
    assert decision.ops == [Set("/config/topics/orders", b'{"version":1,"config":{"a":"1"}}')]


def test_the_first_override_of_a_broker_creates_its_node_and_the_second_sets_it() -> None:
    image = cluster()
    for expected in (Create, Set):
        asked = [resource(BROKER, "1", ("a", SET, expected.__name__))]
        decision = incremental_alter_configs(image, asked, rules=Rules(), validate_only=False)
        assert isinstance(decision.ops[0], expected)
        image.apply_all(decision.changes)
    assert image.broker_overrides(1) == {"a": "Set"}


def test_an_empty_broker_name_is_the_whole_cluster() -> None:
    image = cluster()
    asked = [resource(BROKER, "", ("a", SET, "1"))]
    decision = incremental_alter_configs(image, asked, rules=Rules(), validate_only=False)
    assert decision.ops[0].path == "/config/brokers/<default>"
    image.apply_all(decision.changes)
    assert image.all_broker_overrides() == {"a": "1"}


def test_a_groups_name_may_hold_anything() -> None:
    asked = [resource(GROUP, "a/b", ("a", SET, "1")), resource(METRICS, "m", ("a", SET, "1"))]
    decision = incremental_alter_configs(cluster(), asked, rules=Rules(), validate_only=False)
    assert [op.path for op in decision.ops] == ["/config/groups/a%2Fb", "/config/client-metrics/m"]


def test_nothing_is_written_when_nothing_changes_or_it_is_only_validated() -> None:
    image = cluster(retention_ms="1")
    for value, validate_only in (("1", False), ("2", True)):
        asked = [resource(TOPIC, "orders", ("retention.ms", SET, value))]
        decision = incremental_alter_configs(image, asked, rules=Rules(), validate_only=validate_only)
        assert decision.results[0].error_code == 0
        assert (decision.ops, decision.changes) == ([], [])


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (
            resource(TOPIC, "none"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'none' does not exist.",
        ),
        (resource(TOPIC, ""), ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        (resource(GROUP, ""), ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        (resource(BROKER, "7"), ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 7 found."),
        (resource(BROKER, "x"), ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: x"),
        (resource(99, "x"), ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
        (
            resource(TOPIC, "orders", ("a", SET, "1"), ("a", DELETE, None)),
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            resource(TOPIC, "orders", ("a", SET, None)),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : a",
        ),
        (
            resource(TOPIC, "orders", ("retention.ms", APPEND, "1")),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            resource(TOPIC, "orders", ("nonsense", SET, "1")),
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: nonsense",
        ),
    ],
)
def test_refusals_are_kafkas(asked: incremental.AlterConfigsResource, code: ErrorCode, message: str) -> None:
    assert refusal(asked) == (code, message)


def test_a_resource_named_twice_is_refused_both_times() -> None:
    asked = resource(TOPIC, "orders", ("a", SET, "1"))
    text = "Each resource must appear at most once."
    assert refusal(asked, asked) == (ErrorCode.INVALID_REQUEST, text)


def test_the_old_api_replaces_all_overrides() -> None:
    image = cluster(retention_ms="1", segment_ms="2")
    configs = [legacy.AlterableConfig(name="flush.ms", value="3")]
    asked = [legacy.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=configs)]
    decision = alter_configs(image, asked, rules=Rules(), validate_only=False)
    image.apply_all(decision.changes)
    assert image.topic_overrides("orders") == {"flush.ms": "3"}


def test_the_old_api_refuses_a_null_value() -> None:
    configs = [legacy.AlterableConfig(name="flush.ms", value=None)]
    asked = [legacy.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=configs)]
    (result,) = alter_configs(cluster(), asked, rules=Rules(), validate_only=False).results
    assert result.error_code == ErrorCode.INVALID_REQUEST


def test_each_change_may_leave_a_notification_as_in_kafka() -> None:
    asked = [
        resource(TOPIC, "orders", ("retention.ms", SET, "9")),
        resource(GROUP, "a/b", ("retention.ms", SET, "9")),
        resource(BROKER, "", ("nonsense", SET, "1")),
    ]
    decision = incremental_alter_configs(cluster(), asked, rules=Rules(), validate_only=False, notify=True)
    notifications = [op for op in decision.ops if op.path.startswith("/config/changes")]
    prefix = "/config/changes/config_change_"
    assert notifications == [
        Create(prefix, b'{"version":2,"entity_path":"topics/orders"}', sequence=True),
        Create(prefix, b'{"version":2,"entity_path":"groups/a%2Fb"}', sequence=True),
    ]
    assert len(decision.ops) == 4


def test_notifications_of_config_changes_go_when_they_are_old() -> None:
    seen = {
        "/config/changes/config_change_0000000002": 100,
        "/config/changes/config_change_0000000001": 99,
        "/config/changes/config_change_0000000003": 101,
        "/kafka-acl-changes/acl_changes_0000000000": 7,
    }
    decision = expired_notifications(seen, now_ms=1100, max_age_ms=1000)
    assert decision.ops == [
        Delete("/config/changes/config_change_0000000001"),
        Delete("/config/changes/config_change_0000000002"),
        Delete("/kafka-acl-changes/acl_changes_0000000000"),
    ]
