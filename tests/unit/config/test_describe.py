import pytest

from penstock.config.broker_options import BROKER_OPTIONS
from penstock.config.entry import ConfigEntry
from penstock.config.layers import BrokerConfig
from penstock.config.option import Kind
from penstock.config.topic_options import TOPIC_OPTIONS

SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}

# What kafka-configs --describe --all printed for a topic of Apache Kafka 4.3.1 (it sets min.insync.replicas).
ALL_OF_A_TOPIC = """\
cleanup.policy=delete,compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=delete,compact, DEFAULT_CONFIG:log.cleanup.policy=delete}
compression.gzip.level=-1 sensitive=false synonyms={DEFAULT_CONFIG:compression.gzip.level=-1}
compression.lz4.level=9 sensitive=false synonyms={DEFAULT_CONFIG:compression.lz4.level=9}
compression.type=producer sensitive=false synonyms={DEFAULT_CONFIG:compression.type=producer}
compression.zstd.level=3 sensitive=false synonyms={DEFAULT_CONFIG:compression.zstd.level=3}
delete.retention.ms=86400000 sensitive=false synonyms={DEFAULT_CONFIG:log.cleaner.delete.retention.ms=86400000}
file.delete.delay.ms=60000 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.delete.delay.ms=60000}
flush.messages=9223372036854775807 sensitive=false synonyms={DEFAULT_CONFIG:log.flush.interval.messages=9223372036854775807}
flush.ms=9223372036854775807 sensitive=false synonyms={}
follower.replication.throttled.replicas= sensitive=false synonyms={}
index.interval.bytes=4096 sensitive=false synonyms={DEFAULT_CONFIG:log.index.interval.bytes=4096}
leader.replication.throttled.replicas= sensitive=false synonyms={}
local.retention.bytes=-2 sensitive=false synonyms={DEFAULT_CONFIG:log.local.retention.bytes=-2}
local.retention.ms=-2 sensitive=false synonyms={DEFAULT_CONFIG:log.local.retention.ms=-2}
max.compaction.lag.ms=9223372036854775807 sensitive=false synonyms={DEFAULT_CONFIG:log.cleaner.max.compaction.lag.ms=9223372036854775807}
max.message.bytes=1048588 sensitive=false synonyms={DEFAULT_CONFIG:message.max.bytes=1048588}
message.timestamp.after.max.ms=3600000 sensitive=false synonyms={DEFAULT_CONFIG:log.message.timestamp.after.max.ms=3600000}
message.timestamp.before.max.ms=9223372036854775807 sensitive=false synonyms={DEFAULT_CONFIG:log.message.timestamp.before.max.ms=9223372036854775807}
message.timestamp.type=CreateTime sensitive=false synonyms={DEFAULT_CONFIG:log.message.timestamp.type=CreateTime}
min.cleanable.dirty.ratio=0.5 sensitive=false synonyms={DEFAULT_CONFIG:log.cleaner.min.cleanable.ratio=0.5}
min.compaction.lag.ms=0 sensitive=false synonyms={DEFAULT_CONFIG:log.cleaner.min.compaction.lag.ms=0}
min.insync.replicas=1 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1, DEFAULT_CONFIG:min.insync.replicas=1}
preallocate=false sensitive=false synonyms={DEFAULT_CONFIG:log.preallocate=false}
remote.log.copy.disable=false sensitive=false synonyms={}
remote.log.delete.on.disable=false sensitive=false synonyms={}
remote.storage.enable=false sensitive=false synonyms={}
retention.bytes=-1 sensitive=false synonyms={DEFAULT_CONFIG:log.retention.bytes=-1}
retention.ms=7200000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=7200000}
segment.bytes=1073741824 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=1073741824}
segment.index.bytes=10485760 sensitive=false synonyms={DEFAULT_CONFIG:log.index.size.max.bytes=10485760}
segment.jitter.ms=0 sensitive=false synonyms={}
segment.ms=604800000 sensitive=false synonyms={}
unclean.leader.election.enable=false sensitive=false synonyms={DEFAULT_CONFIG:unclean.leader.election.enable=false}
"""  # noqa: E501


def line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{SOURCES[source]}:{name}={value}" for name, value, source in entry.synonyms)
    sensitive = "true" if entry.sensitive else "false"
    return f"{entry.name}={entry.value} sensitive={sensitive} synonyms={{{synonyms}}}"


def only(entries: list[ConfigEntry]) -> ConfigEntry:
    assert len(entries) == 1
    return entries[0]


def broker_line(config: BrokerConfig, name: str) -> str:
    return line(only(config.describe_broker({name})))


def test_a_topic_with_overrides_is_described_as_kafka_does() -> None:
    config = BrokerConfig({})
    config.set_dynamic(cluster_default={"min.insync.replicas": "1"}, broker={})
    entries = config.describe_topic({"retention.ms": "7200000", "cleanup.policy": "delete,compact"})
    assert [line(entry) for entry in entries] == ALL_OF_A_TOPIC.splitlines()


def test_a_topic_without_overrides_shows_only_defaults() -> None:
    entries = BrokerConfig({}).describe_topic({})
    assert {entry.source for entry in entries} == {5}
    lines = {entry.name: line(entry) for entry in entries}
    assert len(lines) == 33
    assert lines["cleanup.policy"].endswith(
        "=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}"
    )
    assert lines["retention.ms"] == "retention.ms=604800000 sensitive=false synonyms={}"


def test_a_topics_entries_are_never_read_only_and_carry_type_and_sentence() -> None:
    entries = BrokerConfig({}).describe_topic({})
    assert not any(entry.read_only for entry in entries)
    assert all(entry.documentation for entry in entries)
    assert {entry.name: entry.config_type for entry in entries}["min.cleanable.dirty.ratio"] == 6


def test_named_options_are_picked_and_unknown_ones_left_out() -> None:
    entries = BrokerConfig({}).describe_topic({}, ["retention.ms", "bogus"])
    assert [entry.name for entry in entries] == ["retention.ms"]


def test_an_override_is_shown_in_its_normal_form() -> None:
    entry = only(BrokerConfig({}).describe_topic({"retention.ms": " +12 "}, ["retention.ms"]))
    assert line(entry) == "retention.ms=12 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=12}"


def test_the_hidden_segment_size_is_described_only_where_it_is_set() -> None:
    config = BrokerConfig({})
    assert "internal.segment.bytes" in [
        e.name for e in config.describe_topic({"internal.segment.bytes": "100"})
    ]
    assert "internal.segment.bytes" not in [e.name for e in config.describe_topic({})]


def test_a_coarser_static_unit_gives_a_topic_its_value_but_no_synonym() -> None:
    entry = only(BrokerConfig({"log.retention.hours": "1"}).describe_topic({}, ["retention.ms"]))
    assert line(entry) == "retention.ms=3600000 sensitive=false synonyms={}"
    assert entry.is_default


def test_a_dynamic_broker_value_shows_the_default_it_hides() -> None:
    config = BrokerConfig({})
    config.set_dynamic(cluster_default={}, broker={"log.retention.ms": "1000000"})
    assert broker_line(config, "log.retention.ms") == (
        "log.retention.ms=1000000 sensitive=false "
        "synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=1000000, DEFAULT_CONFIG:log.retention.hours=168}"
    )


def test_all_layers_of_a_broker_value_are_shown_strongest_first() -> None:
    config = BrokerConfig({"log.retention.ms": "3"})
    config.set_dynamic(
        cluster_default={"log.retention.ms": "2000000"}, broker={"log.retention.ms": "1000000"}
    )
    assert broker_line(config, "log.retention.ms") == (
        "log.retention.ms=1000000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=1000000, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=2000000, STATIC_BROKER_CONFIG:log.retention.ms=3, "
        "DEFAULT_CONFIG:log.retention.hours=168}"
    )


def test_the_clusters_defaults_show_their_own_layer_only() -> None:
    config = BrokerConfig({})
    config.set_dynamic(
        cluster_default={"min.insync.replicas": "1", "log.retention.ms": "2000000"},
        broker={"log.retention.ms": "1000000"},
    )
    assert [line(entry) for entry in config.describe_cluster_default()] == [
        "log.retention.ms=2000000 sensitive=false "
        "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=2000000}",
        "min.insync.replicas=1 sensitive=false "
        "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1}",
    ]


def test_a_password_is_never_shown() -> None:
    config = BrokerConfig({"ssl.keystore.password": "hunter2", "some.plugin.thing": "hunter2"})
    for name in ("ssl.keystore.password", "some.plugin.thing"):
        entry = only(config.describe_broker({name}))
        assert entry.sensitive
        assert entry.value is None
        assert entry.synonyms == [(name, None, 4)]
    assert "hunter2" not in repr(config.describe_broker())


def test_a_listeners_own_option_falls_back_to_the_plain_one() -> None:
    name = "listener.name.internal.ssl.client.auth"
    config = BrokerConfig({name: "required", "ssl.client.auth": "requested"})
    assert broker_line(config, name) == (
        f"{name}=required sensitive=false synonyms={{STATIC_BROKER_CONFIG:{name}=required, "
        "STATIC_BROKER_CONFIG:ssl.client.auth=requested, DEFAULT_CONFIG:ssl.client.auth=none}"
    )


def test_a_broker_describes_every_option_but_hidden_ones_in_order() -> None:
    names = [entry.name for entry in BrokerConfig({}).describe_broker()]
    assert names == sorted(names)
    assert set(names) == {name for name, option in BROKER_OPTIONS.items() if not option.internal}


@pytest.mark.parametrize(
    ("name", "read_only", "kind"),
    [
        ("log.retention.hours", True, Kind.INT),
        ("log.retention.ms", False, Kind.LONG),
        ("listeners", True, Kind.LIST),
        ("offsets.topic.replication.factor", True, Kind.SHORT),
    ],
)
def test_an_entry_tells_its_type_and_whether_it_may_change(name: str, read_only: bool, kind: Kind) -> None:
    entry = only(BrokerConfig({}).describe_broker([name]))
    assert (entry.read_only, entry.kind) == (read_only, kind)


def test_every_option_has_a_sentence_and_a_default_that_passes_its_own_check() -> None:
    for option in (*TOPIC_OPTIONS.values(), *BROKER_OPTIONS.values()):
        assert option.doc.endswith("."), option.name
        if option.default_text is not None:
            assert option.parse(option.default_text) == option.default, option.name


def test_every_synonym_of_a_topic_option_is_a_broker_option_with_the_same_default() -> None:
    for option in TOPIC_OPTIONS.values():
        defaults = [(BROKER_OPTIONS[name].default, factor) for name, factor in option.synonyms]
        given = [
            default * factor if factor > 1 else default for default, factor in defaults if default is not None
        ]
        assert not given or given[0] == option.default, option.name
