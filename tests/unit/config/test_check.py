import pytest

from penstock.config.check import check_broker_dynamic, check_topic_overrides
from penstock.config.layers import BrokerConfig
from penstock.model.errors import ApiError, ErrorCode


def topic_refusal(overrides: dict[str, str | None], config: BrokerConfig | None = None) -> str | None:
    with pytest.raises(ApiError) as caught:
        check_topic_overrides(config or BrokerConfig({}), overrides)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.detail


def broker_refusal(configs: dict[str, str], *, whole_cluster: bool = False) -> str | None:
    with pytest.raises(ApiError) as caught:
        check_broker_dynamic(configs, whole_cluster=whole_cluster)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    return caught.value.detail


@pytest.mark.parametrize(
    ("name", "value", "detail"),
    [
        ("bogus", "1", "Unknown topic config name: bogus"),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", "-5", "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
        (
            "segment.bytes",
            "-5",
            "Invalid value -5 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "compression.type",
            "none",
            "Invalid value none for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
        (
            "remote.storage.enable",
            "true",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_a_topic_override_is_refused_in_kafkas_words(name: str, value: str | None, detail: str) -> None:
    assert topic_refusal({name: value}) == detail


def test_compaction_lags_may_not_cross_even_when_one_comes_from_the_broker() -> None:
    detail = "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)"
    assert topic_refusal({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"}) == detail
    config = BrokerConfig({"log.cleaner.max.compaction.lag.ms": "50"})
    assert topic_refusal({"min.compaction.lag.ms": "100"}, config) == detail


def test_good_topic_overrides_pass() -> None:
    overrides: dict[str, str | None] = {
        "retention.ms": "-1",
        "cleanup.policy": "delete, compact",
        "internal.segment.bytes": "100",
    }
    check_topic_overrides(BrokerConfig({}), overrides)
    check_topic_overrides(BrokerConfig({}), {"cleanup.policy": ""})


def test_an_option_fixed_at_the_start_cannot_change_live() -> None:
    detail = "Cannot update these configs dynamically: [broker.id, log.dirs]"
    assert broker_refusal({"broker.id": "5", "log.dirs": "a"}) == detail
    # Known by name only, and fixed all the same.
    assert (
        broker_refusal({"metadata.log.dir": "a"})
        == "Cannot update these configs dynamically: [metadata.log.dir]"
    )


def test_a_live_value_is_checked() -> None:
    detail = "Invalid value abc for configuration log.retention.ms: Not a number of type LONG"
    assert broker_refusal({"log.retention.ms": "abc"}) == detail
    detail = "Invalid value -1 for configuration leader.replication.throttled.rate: Value must be at least 0"
    assert broker_refusal({"leader.replication.throttled.rate": "-1"}) == detail


def test_a_listener_is_one_brokers_own() -> None:
    text = "Cannot update these configs at default cluster level, broker id must be specified"
    assert broker_refusal({"sasl.jaas.config": "x"}, whole_cluster=True) == f"{text}: [sasl.jaas.config]"
    name = "listener.name.x.ssl.keystore.location"
    assert broker_refusal({name: "f"}, whole_cluster=True) == f"{text}: [{name}]"
    check_broker_dynamic({name: "f"}, whole_cluster=False)


@pytest.mark.parametrize("name", ["listeners", "listener.security.protocol.map"])
def test_what_a_broker_listens_on_cannot_change_live_as_nothing_would_be_bound_anew(name: str) -> None:
    assert broker_refusal({name: "PLAINTEXT://:1"}) == f"Cannot update these configs dynamically: [{name}]"


def test_tls_options_change_live_only_for_a_named_listener() -> None:
    assert broker_refusal({"ssl.keystore.location": "f"}) == (
        "These security configs can be dynamically updated only per-listener using the listener prefix: "
        "[ssl.keystore.location]"
    )


def test_good_and_foreign_broker_values_pass() -> None:
    configs = {
        "log.retention.ms": "1000",
        "bogus": "1",
        "max.connections": "4",
        "listener.name.x.max.connections": "3",
    }
    check_broker_dynamic(configs, whole_cluster=True)
