from penstock.metadata.image import (
    BrokerRegistration,
    ClusterImage,
    ConfigsChanged,
    PartitionChanged,
    PartitionRegistration,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from penstock.model.ids import NO_ID

ID = bytes(range(16))


def image_with_orders() -> ClusterImage:
    image = ClusterImage()
    image.add_broker(BrokerRegistration(1, {}))
    image.apply(TopicCreated("orders", ID, (PartitionRegistration((1, 2), (1,), 1),)))
    return image


def test_a_topic_is_found_by_name_and_by_id() -> None:
    image = image_with_orders()
    assert image.topic("orders") is image.topic_with_id(ID)
    assert image.topic_id("orders") == ID
    assert image.topic_name(ID) == "orders"


def test_what_is_not_there_is_none() -> None:
    image = image_with_orders()
    assert image.topic("none") is None
    assert image.topic_id("none") == NO_ID
    assert image.topic_name(bytes(16)) is None
    assert image.partition("orders", 1) is None
    assert image.partition("orders", -1) is None
    assert image.partition("none", 0) is None
    assert image.offline_replicas("none", 0) == []
    assert image.topic_overrides("none") == {}


def test_a_deleted_topic_is_gone_by_name_and_by_id() -> None:
    image = image_with_orders()
    image.apply(TopicDeleted("orders"))
    assert image.topic("orders") is None
    assert image.topic_with_id(ID) is None


def test_partitions_are_added_and_replaced() -> None:
    image = image_with_orders()
    image.apply(PartitionsAdded("orders", (PartitionRegistration((1,), (1,), 1),)))
    led_by_2 = PartitionRegistration((1, 2), (1, 2), 2, 1, 1)
    image.apply(PartitionChanged("orders", 0, led_by_2))
    assert image.partition("orders", 0) == led_by_2
    assert image.partition("orders", 1) == PartitionRegistration((1,), (1,), 1)


def test_replicas_of_missing_brokers_and_failed_disks_are_offline() -> None:
    image = image_with_orders()
    assert image.offline_replicas("orders", 0) == [2]
    image.set_failed_replicas("orders", 0, [1])
    assert image.offline_replicas("orders", 0) == [1, 2]
    image.set_failed_replicas("orders", 0, [])
    image.add_broker(BrokerRegistration(2, {}))
    assert image.offline_replicas("orders", 0) == []


def test_overrides_are_replaced_as_a_whole_and_may_be_none() -> None:
    image = ClusterImage()
    image.apply(ConfigsChanged("topics", "orders", {"a": "1", "b": "2"}))
    image.apply(ConfigsChanged("topics", "orders", {"b": "3"}))
    assert image.topic_overrides("orders") == {"b": "3"}
    image.apply(ConfigsChanged("topics", "orders", {}))
    assert image.has_config_node("topics", "orders")
    image.apply(ConfigsChanged("topics", "orders", None))
    assert not image.has_config_node("topics", "orders")


def test_broker_overrides_are_the_brokers_own_or_all_brokers() -> None:
    image = ClusterImage()
    image.apply(ConfigsChanged("brokers", "1", {"a": "1"}))
    image.apply(ConfigsChanged("brokers", "<default>", {"a": "2"}))
    assert image.broker_overrides(1) == {"a": "1"}
    assert image.broker_overrides(2) == {}
    assert image.all_broker_overrides() == {"a": "2"}


def test_every_change_moves_the_revision() -> None:
    image = image_with_orders()
    seen = [image.revision]
    for change in (
        lambda: image.apply(ConfigsChanged("topics", "orders", {})),
        lambda: image.set_controller(1, epoch=2),
        lambda: image.remove_broker(1),
        lambda: image.set_failed_replicas("orders", 0, [1]),
        lambda: image.apply(TopicDeleted("orders")),
        lambda: image.set_cluster_id("id"),
    ):
        change()
        seen.append(image.revision)
    assert seen == sorted(set(seen))


def test_differences_between_images_are_said() -> None:
    image, other = image_with_orders(), image_with_orders()
    assert image.differences(other) == []
    other.apply(ConfigsChanged("topics", "orders", {"a": "1"}))
    other.set_controller(1, epoch=2)
    assert len(image.differences(other)) == 3


def test_setting_the_same_brokers_again_leaves_the_revision() -> None:
    image = image_with_orders()
    image.set_brokers([BrokerRegistration(2, {}, None, 7), BrokerRegistration(3, {})])
    assert image.brokers == {2: BrokerRegistration(2, {}, None, 7), 3: BrokerRegistration(3, {})}
    revision = image.revision
    image.set_brokers([BrokerRegistration(3, {}), BrokerRegistration(2, {}, None, 7)])
    assert image.revision == revision


def test_an_image_replaced_by_its_equal_changes_nothing() -> None:
    image, other = image_with_orders(), image_with_orders()
    revision = image.revision
    assert image.replace_with(other) == []
    assert image.revision == revision


def test_an_image_becomes_another_by_the_changes_between_them() -> None:
    image, other = image_with_orders(), image_with_orders()
    image.apply(TopicCreated("old", bytes([1] * 16), (PartitionRegistration((1,), (1,), 1),)))
    image.apply(TopicCreated("again", bytes([2] * 16), (PartitionRegistration((1,), (1,), 1),)))
    image.apply(ConfigsChanged("topics", "orders", {"retention.ms": "1"}))
    image.apply(ConfigsChanged("groups", "g", {}))
    led_by_2, added = PartitionRegistration((1, 2), (1, 2), 2, 1, 1), PartitionRegistration((1,), (1,), 1)
    other.apply(PartitionChanged("orders", 0, led_by_2))
    other.apply(PartitionsAdded("orders", (added,)))
    other.apply(TopicCreated("again", bytes([3] * 16), (added,)))
    other.apply(ConfigsChanged("topics", "orders", {"retention.ms": "2"}))
    other.set_brokers([BrokerRegistration(2, {}, None, 9)])
    other.set_cluster_id("cluster")
    other.set_controller(2, epoch=3)
    assert image.replace_with(other) == [
        TopicDeleted("old"),
        TopicDeleted("again"),
        PartitionChanged("orders", 0, led_by_2),
        PartitionsAdded("orders", (added,)),
        TopicCreated("again", bytes([3] * 16), (added,)),
        ConfigsChanged("groups", "g", None),
        ConfigsChanged("topics", "orders", {"retention.ms": "2"}),
    ]
    assert image.differences(other) == []
    assert image.topic_with_id(bytes([3] * 16)) is image.topic("again")


def test_a_topic_with_fewer_partitions_is_another_topic() -> None:
    image, other = image_with_orders(), image_with_orders()
    image.apply(PartitionsAdded("orders", (PartitionRegistration((1,), (1,), 1),)))
    assert [type(change) for change in image.replace_with(other)] == [TopicDeleted, TopicCreated]
    assert image.differences(other) == []
