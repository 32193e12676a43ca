"""Options: what is taken, and what is refused by its name."""

import pytest

from penstock.model.ids import TopicPartition
from penstock.spark.failures import BadOption
from penstock.spark.kafka_properties import for_librdkafka
from penstock.spark.options import ReadOptions, read_options, write_options
from penstock.spark.reading.offsets import EARLIEST, LATEST

CLUSTER = {"kafka.bootstrap.servers": "localhost:9092"}
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def batch(**options: str) -> ReadOptions:
    return read_options({**CLUSTER, "subscribe": "a", **options}, streaming=False)


def stream(**options: str) -> ReadOptions:
    return read_options({**CLUSTER, "subscribe": "a", **options}, streaming=True)


def test_a_batch_starts_at_the_beginning_and_a_stream_at_the_end() -> None:
    assert batch().starting.everywhere == EARLIEST
    assert stream().starting.everywhere == LATEST
    assert batch().ending.everywhere == LATEST


def test_uncommitted_records_are_read_unless_it_is_said_otherwise() -> None:
    assert not batch().is_read_committed
    assert batch(**{"kafka.isolation.level": "read_committed"}).is_read_committed


def test_names_are_taken_in_any_case() -> None:
    assert batch(STARTINGOFFSETS='{"a":{"0":23,"1":-2}}').starting.by_partition == {A0: 23, A1: EARLIEST}


def test_topics_are_a_list_with_commas() -> None:
    options = read_options({**CLUSTER, "subscribe": "b, a,,a"}, streaming=False)
    assert options.subscription.topics == ("a", "b")


def test_a_timestamp_goes_before_timestamps_and_these_before_offsets() -> None:
    by_timestamp = '{"a":{"0":1000}}'
    assert batch(startingTimestamp="5", startingOffsetsByTimestamp=by_timestamp).starting.everywhere == 5
    chosen = batch(startingOffsetsByTimestamp=by_timestamp, startingOffsets="earliest").starting
    assert (chosen.by_partition, chosen.are_timestamps) == ({A0: 1000}, True)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [("15m", 900_000), ("30s", 30_000), ("250ms", 250), ("250", 250), ("1h", 3_600_000)],
)
def test_times_have_units(text: str, expected_ms: int) -> None:
    assert stream(maxTriggerDelay=text).max_trigger_delay_ms == expected_ms


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffset": "earliest"}, "'startingOffset' is unknown; did you mean 'startingOffsets'"),
        ({"topic": "a"}, "'topic' is unknown; did you mean 'subscribe'"),
        ({"path": "a"}, "'path' is unknown; did you mean 'subscribe'"),
        ({"bootstrap.servers": "h:9092"}, "'bootstrap.servers' is unknown; did you mean 'kafka.bootstrap.servers'"),
        ({"startingOffsets": "first"}, "'startingOffsets' must be earliest, latest or like"),
        ({"startingOffsets": '{"a": 3}'}, "'startingOffsets' must be like"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "'startingOffsets' must have offsets of at least 0"),
        ({"startingOffsets": "latest"}, "'startingOffsets' cannot be latest in a batch"),
        ({"startingOffsets": '{"a": {"0": -1}}'}, "'startingOffsets' cannot be latest in a batch"),
        ({"endingOffsets": "earliest"}, "'endingOffsets' cannot be earliest"),
        ({"startingTimestamp": "today"}, "'startingTimestamp' must be a whole number"),
        ({"startingOffsetsByTimestampStrategy": "skip"}, "'startingOffsetsByTimestampStrategy' must be"),
        ({"failOnDataLoss": "maybe"}, "'failOnDataLoss' must be true or false, not 'maybe'"),
        ({"includeHeaders": "1"}, "'includeHeaders' must be true or false"),
        ({"maxOffsetsPerTrigger": "0"}, "'maxOffsetsPerTrigger' must be a whole number of at least 1"),
        ({"minPartitions": "two"}, "'minPartitions' must be a whole number"),
        ({"maxTriggerDelay": "soon"}, "'maxTriggerDelay' must be a time such as 15m"),
        ({"subscribePattern": "a.*"}, "'subscribePattern' cannot be given together with 'subscribe'"),
        ({"subscribe": ","}, "'subscribe' must name one topic"),
        ({"commit.group": " "}, "'commit.group' must not be empty"),
        ({"kafka.isolation.level": "committed"}, "'kafka.isolation.level' must be read_committed or"),
        ({"kafka.bootstrap.server": "x"}, "'kafka.bootstrap.server' is unknown; did you mean 'kafka.bootstrap.servers'"),
        ({"kafka.auto.offset.reset": "latest"}, "'kafka.auto.offset.reset' cannot be set: use 'startingOffsets'"),
        ({"kafka.group.idd": "g"}, "'kafka.group.idd' is unknown"),
        ({"kafka.value.deserializer": "x"}, "'kafka.value.deserializer' cannot be set"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_by_its_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption) as refused:
        batch(**options)
    assert message in str(refused.value)


def test_a_bad_pattern_is_refused() -> None:
    with pytest.raises(BadOption, match="'subscribePattern' is not a regular expression"):
        read_options({**CLUSTER, "subscribePattern": "a("}, streaming=False)


def test_some_topics_must_be_named() -> None:
    with pytest.raises(BadOption, match="'subscribe' must name the topics"):
        read_options(CLUSTER, streaming=False)


def test_the_cluster_must_be_named() -> None:
    with pytest.raises(BadOption, match=r"'kafka\.bootstrap\.servers' must say where"):
        read_options({"subscribe": "a"}, streaming=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(BadOption, match=f"'{name}' is for batch reads"):
        stream(**{name: '{"a": {"0": 5}}' if name != "endingTimestamp" else "5"})


def test_every_option_of_sparks_own_source_is_taken() -> None:
    stream(
        startingOffsets="earliest", failOnDataLoss="false", groupIdPrefix="p", maxOffsetsPerTrigger="10",
        minOffsetsPerTrigger="5", maxTriggerDelay="1m", minPartitions="4", includeHeaders="true",
        maxRecordsPerPartition="9",
        **{"kafkaConsumer.pollTimeoutMs": "1", "fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "1",
           "kafka.group.id": "g", "kafka.max.poll.records": "5000", "kafka.fetch.max.wait.ms": "10"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": "a"}, "'topics' is unknown; did you mean 'topic'"),
        ({"subscribe": "a"}, "'subscribe' is unknown; did you mean 'topic'"),
        ({"acks": "all"}, "'acks' is unknown; did you mean 'kafka.acks'"),
        ({"exactlyOnce": "yes"}, "'exactlyOnce' must be true or false"),
        ({"exactlyOnce": "true", "kafka.acks": "1"}, "'kafka.acks' must be all"),
        (
            {"exactlyOnce": "true", "kafka.enable.idempotence": "false"},
            "'kafka.enable.idempotence' must be true",
        ),
        ({"transactionalIdPrefix": "x"}, "'transactionalIdPrefix' has a meaning with 'exactlyOnce' only"),
        ({"kafka.transactional.id": "x"}, "'kafka.transactional.id' cannot be set"),
        ({"kafka.fetch.max.bytes": "1"}, "'kafka.fetch.max.bytes' is unknown"),
    ],
)
def test_a_wrong_option_of_the_sink_is_refused_by_its_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption) as refused:
        write_options({**CLUSTER, **options})
    assert message in str(refused.value)


def test_the_java_clients_names_become_librdkafkas() -> None:
    settings = for_librdkafka(
        {
            "bootstrap.servers": "b:1",
            "delivery.timeout.ms": "9",
            "max.request.size": "7",
            "buffer.memory": "1048576",
            "max.block.ms": "5",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": 'org.x.ScramLoginModule required username="u" password="p";',
        }
    )
    assert settings == {
        "bootstrap.servers": "b:1",
        "message.timeout.ms": "9",
        "message.max.bytes": "7",
        "queue.buffering.max.kbytes": "1024",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "u",
        "sasl.password": "p",
    }
