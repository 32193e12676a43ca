import pytest

from penstock.config.layers import BrokerConfig
from penstock.config.topic_options import SCHEMA_OPTIONS


def test_a_value_comes_from_the_strongest_layer_that_has_one() -> None:
    config = BrokerConfig({})
    assert config.get("message.max.bytes") == 1_048_588
    config = BrokerConfig({"message.max.bytes": "1"})
    assert config.get("message.max.bytes") == 1
    config.set_dynamic(cluster_default={"message.max.bytes": "2"}, broker={})
    assert config.get("message.max.bytes") == 2
    config.set_dynamic(cluster_default={"message.max.bytes": "2"}, broker={"message.max.bytes": "3"})
    assert config.get("message.max.bytes") == 3
    assert config.topic_value({}, "max.message.bytes") == 3
    assert config.topic_value({"max.message.bytes": "4"}, "max.message.bytes") == 4


def test_taking_a_dynamic_value_away_brings_the_static_one_back() -> None:
    config = BrokerConfig({"message.max.bytes": "1"})
    config.set_dynamic(cluster_default={}, broker={"message.max.bytes": "3"})
    config.set_dynamic(cluster_default={}, broker={})
    assert config.get("message.max.bytes") == 1


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_retention_takes_the_finest_unit_that_is_set(static: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig(static).topic_value({}, "retention.ms") == retention_ms


def test_a_dynamic_value_hides_a_static_one_of_a_finer_unit() -> None:
    config = BrokerConfig({"log.retention.ms": "4", "log.roll.hours": "1"})
    config.set_dynamic(cluster_default={}, broker={"log.retention.ms": "9", "log.roll.ms": "5"})
    assert config.topic_value({}, "retention.ms") == 9
    assert config.topic_value({}, "segment.ms") == 5
    assert not config.is_set("log.roll.hours")


def test_roll_and_jitter_take_hours_too() -> None:
    config = BrokerConfig({"log.roll.hours": "1", "log.roll.jitter.hours": "2"})
    assert config.topic_value({}, "segment.ms") == 3_600_000
    assert config.topic_value({}, "segment.jitter.ms") == 7_200_000


def test_the_flush_time_falls_back_to_the_schedulers() -> None:
    config = BrokerConfig({"log.flush.scheduler.interval.ms": "500"})
    assert config.topic_value({}, "flush.ms") == 500
    config.set_dynamic(cluster_default={"log.flush.interval.ms": "100"}, broker={})
    assert config.topic_value({}, "flush.ms") == 100


def test_log_options_are_all_topic_options_typed() -> None:
    options = BrokerConfig({"log.preallocate": "true"}).log_options({"cleanup.policy": "compact"})
    assert len(options) == 33 + len(SCHEMA_OPTIONS)
    assert options["cleanup.policy"] == ["compact"]
    assert options["preallocate"] is True
    assert options["min.cleanable.dirty.ratio"] == 0.5
    assert options["segment.bytes"] == 1_073_741_824


def test_the_hidden_segment_size_wins_over_the_open_one() -> None:
    options = BrokerConfig({}).log_options({"internal.segment.bytes": "1000"})
    assert options["segment.bytes"] == 1000
    assert "internal.segment.bytes" not in options


def test_a_stored_value_that_no_longer_parses_is_left_out_and_reported() -> None:
    config = BrokerConfig({})
    reports = config.set_dynamic(cluster_default={"message.max.bytes": "x"}, broker={"log.retention.ms": "5"})
    assert [report.text for report in reports] == [
        "a stored broker option is ignored: "
        "Invalid value x for configuration message.max.bytes: Not a number of type INT"
    ]
    assert config.get("message.max.bytes") == 1_048_588
    assert config.get("log.retention.ms") == 5


def test_an_unknown_topic_option_has_no_value() -> None:
    with pytest.raises(KeyError):
        BrokerConfig({}).topic_value({}, "bogus")


def test_log_directories_come_from_the_plural_first() -> None:
    assert BrokerConfig({"log.dir": "a"}).log_dirs == ["a"]
    assert BrokerConfig({"log.dir": "a", "log.dirs": "b, c"}).log_dirs == ["b", "c"]


def test_controller_listeners_are_neither_bound_nor_advertised() -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://a:9092,CONTROLLER://a:9093",
            "controller.listener.names": "CONTROLLER",
        }
    )
    assert config.listeners == ["PLAINTEXT://:9092"]
    assert config.advertised_listeners == ["PLAINTEXT://a:9092"]


def test_nothing_is_advertised_unless_told() -> None:
    assert BrokerConfig({}).advertised_listeners == []


def test_a_stored_value_that_cannot_take_effect_is_reported_and_not_described() -> None:
    config = BrokerConfig({"listeners": "PLAINTEXT://:9092"})
    (report,) = config.set_dynamic(cluster_default={}, broker={"listeners": "PLAINTEXT://:1"})
    assert report.text == ("a stored broker option is ignored: listeners cannot change while a broker runs")
    (entry,) = config.describe_broker(["listeners"])
    assert entry.value == "PLAINTEXT://:9092"
