import pytest

from penstock.config.check import check_group_overrides
from penstock.config.entry import ConfigEntry
from penstock.config.layers import BrokerConfig
from penstock.model.errors import ApiError, ErrorCode

SOURCES = {
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}

# What kafka-configs --describe --all printed for a group of Apache Kafka 4.3.1.
ALL_OF_A_GROUP = """\
consumer.assignment.interval.ms=1000 synonyms={DEFAULT_CONFIG:group.consumer.assignment.interval.ms=1000}
consumer.heartbeat.interval.ms=5000 synonyms={DEFAULT_CONFIG:group.consumer.heartbeat.interval.ms=5000}
consumer.session.timeout.ms=50000 synonyms={DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000, DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}
share.assignment.interval.ms=1000 synonyms={DEFAULT_CONFIG:group.share.assignment.interval.ms=1000}
share.auto.offset.reset=earliest synonyms={DYNAMIC_GROUP_CONFIG:share.auto.offset.reset=earliest, DEFAULT_CONFIG:share.auto.offset.reset=latest}
share.delivery.count.limit=5 synonyms={DEFAULT_CONFIG:group.share.delivery.count.limit=5}
share.heartbeat.interval.ms=5000 synonyms={DEFAULT_CONFIG:group.share.heartbeat.interval.ms=5000}
share.isolation.level=read_uncommitted synonyms={DEFAULT_CONFIG:share.isolation.level=read_uncommitted}
share.partition.max.record.locks=2000 synonyms={DEFAULT_CONFIG:group.share.partition.max.record.locks=2000}
share.record.lock.duration.ms=30000 synonyms={DEFAULT_CONFIG:group.share.record.lock.duration.ms=30000}
share.renew.acknowledge.enable=true synonyms={DEFAULT_CONFIG:share.renew.acknowledge.enable=true}
share.session.timeout.ms=45000 synonyms={DEFAULT_CONFIG:group.share.session.timeout.ms=45000}
streams.assignment.interval.ms=1000 synonyms={DEFAULT_CONFIG:group.streams.assignment.interval.ms=1000}
streams.heartbeat.interval.ms=5000 synonyms={DEFAULT_CONFIG:group.streams.heartbeat.interval.ms=5000}
streams.initial.rebalance.delay.ms=3000 synonyms={DEFAULT_CONFIG:group.streams.initial.rebalance.delay.ms=3000}
streams.num.standby.replicas=0 synonyms={DEFAULT_CONFIG:group.streams.num.standby.replicas=0}
streams.session.timeout.ms=45000 synonyms={DEFAULT_CONFIG:group.streams.session.timeout.ms=45000}
"""  # noqa: E501


def line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{SOURCES[source]}:{name}={value}" for name, value, source in entry.synonyms)
    return f"{entry.name}={entry.value} synonyms={{{synonyms}}}"


def refusal(overrides: dict[str, str], config: BrokerConfig | None = None) -> str | None:
    with pytest.raises(ApiError) as caught:
        check_group_overrides(config or BrokerConfig({}), overrides)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.detail


def test_a_group_is_described_as_kafka_does() -> None:
    overrides = {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "earliest"}
    entries = BrokerConfig({}).describe_group(overrides)
    assert [line(entry) for entry in entries] == ALL_OF_A_GROUP.splitlines()
    assert not any(entry.read_only or entry.sensitive for entry in entries)


def test_what_the_broker_was_given_is_a_groups_default() -> None:
    config = BrokerConfig({"group.consumer.heartbeat.interval.ms": "6000"})
    (entry,) = config.describe_group({}, ["consumer.heartbeat.interval.ms"])
    assert line(entry) == (
        "consumer.heartbeat.interval.ms=6000 synonyms={STATIC_BROKER_CONFIG:group.consumer.heartbeat.interval.ms"
        "=6000, DEFAULT_CONFIG:group.consumer.heartbeat.interval.ms=5000}"
    )
    assert config.group_value({}, "consumer.heartbeat.interval.ms") == 6000


def test_a_subscription_is_described_as_kafka_does() -> None:
    entries = BrokerConfig({}).describe_client_metrics({"interval.ms": "2000", "metrics": "a.,b."})
    assert [line(entry) for entry in entries] == [
        "interval.ms=2000 synonyms={DYNAMIC_CLIENT_METRICS_CONFIG:interval.ms=2000}",
        "match= synonyms={}",
        "metrics=a.,b. synonyms={DYNAMIC_CLIENT_METRICS_CONFIG:metrics=a.,b.}",
    ]


# What Apache Kafka 4.3.1 said.
@pytest.mark.parametrize(
    ("name", "value", "detail"),
    [
        ("nonsense", "1", "Unknown group config name: nonsense"),
        (
            "consumer.session.timeout.ms", "abc",
            "Invalid value abc for configuration consumer.session.timeout.ms: Not a number of type INT",
        ),
        (
            "consumer.heartbeat.interval.ms", "0",
            "Invalid value 0 for configuration consumer.heartbeat.interval.ms: Value must be at least 1",
        ),
        (
            "share.auto.offset.reset", "xyz",
            "Invalid value xyz for configuration share.auto.offset.reset: Invalid value `xyz` for configuration "
            "share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format "
            "'by_duration:<PnDTnHnMn.nS>'.",
        ),
        (
            "share.isolation.level", "x",
            "Invalid value x for configuration share.isolation.level: String must be one of: read_committed, "
            "read_uncommitted",
        ),
        (
            "share.renew.acknowledge.enable", "maybe",
            "Invalid value maybe for configuration share.renew.acknowledge.enable: Expected value to be either true "
            "or false",
        ),
        (
            "streams.num.standby.replicas", "5",
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
    ],
)  # fmt: skip
def test_what_no_group_can_have_is_refused_in_kafkas_words(name: str, value: str, detail: str) -> None:
    assert refusal({name: value}) == detail


@pytest.mark.parametrize(
    ("name", "too_low", "too_high"),
    [
        ("consumer.session.timeout.ms", "44999", "60001"),
        ("consumer.heartbeat.interval.ms", "4999", "15001"),
        ("consumer.assignment.interval.ms", None, "15001"),
        ("share.session.timeout.ms", "44999", "60001"),
        ("share.heartbeat.interval.ms", "4999", "15001"),
        ("share.record.lock.duration.ms", "14999", "60001"),
        ("share.delivery.count.limit", None, "11"),
        ("share.partition.max.record.locks", None, "4001"),
        ("streams.session.timeout.ms", "44999", "60001"),
        ("streams.heartbeat.interval.ms", "4999", "15001"),
    ],
)
def test_values_outside_the_brokers_bounds_are_refused(name: str, too_low: str | None, too_high: str) -> None:
    protocol, _, setting = name.partition(".")
    bound = f"group.{protocol}.{{}}.{setting}"
    if too_low is not None:
        text = f"{name} must be greater than or equal to {bound.format('min')}"
        assert refusal({name: too_low}) == text
    assert refusal({name: too_high}) == f"{name} must be less than or equal to {bound.format('max')}"
    for fine in (too_low and str(int(too_low) + 1), str(int(too_high) - 1)):
        if fine:
            check_group_overrides(BrokerConfig({}), {name: fine})


def test_the_bounds_are_the_brokers_own() -> None:
    config = BrokerConfig(
        {"group.consumer.min.session.timeout.ms": "100", "group.consumer.heartbeat.interval.ms": "50"}
    )
    check_group_overrides(config, {"consumer.session.timeout.ms": "100"})
    text = "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    config = BrokerConfig({"group.consumer.min.session.timeout.ms": "100"})
    assert refusal({"consumer.session.timeout.ms": "4000"}, config) == text


def test_what_a_group_leaves_to_the_broker_is_not_held_against_it() -> None:
    config = BrokerConfig({"group.consumer.session.timeout.ms": "6000"})  # below its own bound
    check_group_overrides(config, {"share.isolation.level": "read_committed"})


@pytest.mark.parametrize("text", ["PT1H", "P1DT2H3M4.5S", "PT0S", "pt5m", "P2D"])
def test_durations_are_java_s(text: str) -> None:
    check_group_overrides(BrokerConfig({}), {"share.auto.offset.reset": f"by_duration:{text}"})


@pytest.mark.parametrize("text", ["", "P", "PT", "-PT1H", "1H", "PT-1H", "P1Y"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert refusal({"share.auto.offset.reset": f"by_duration:{text}"}) is not None
