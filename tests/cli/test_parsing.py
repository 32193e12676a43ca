import struct
from pathlib import Path

import pytest

from penstock.admin.topic_filter import chosen_topics
from penstock.cli.kafka import get_offsets, leader_election
from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.options import Option, OptionError, OptionTable, UsageError
from penstock.cli.verbs.consume import parse_time
from penstock.client.errors import UserError
from penstock.client.line_reader import BadLine, LineReader, Record
from penstock.client.properties import to_librdkafka
from penstock.client.reach import parse_addresses
from penstock.model.endpoints import Address
from penstock.model.java_order import in_hash_map_order, java_hash
from penstock.model.java_values import deserializer, java_float

TABLE = OptionTable(
    "tool",
    "Does nothing.",
    [
        Option("topic", "A topic.", "NAME"),
        Option("topic-id", "An id.", "ID"),
        Option("time", "A time.", "T", "latest"),
        Option("codec", "A codec.", "CODEC", value_is_optional=True),
        Option("describe", "Describe."),
    ],
    examples=["tool --describe"],
)


def test_values_come_after_a_blank_or_an_equals_sign() -> None:
    given = TABLE.parse(["--topic", "a", "--topic-id=b=c", "-describe"])
    assert (given.value("topic"), given.value("topic-id"), given.has("describe")) == ("a", "b=c", True)
    assert (given.has("time"), given.value("time")) == (False, "latest")


def test_a_value_may_begin_with_a_dash() -> None:
    assert TABLE.parse(["--time", "-1"]).value("time") == "-1"


def test_an_optional_value_is_left_out_before_an_option() -> None:
    given = TABLE.parse(["--codec", "--describe"])
    assert (given.has("codec"), given.value("codec")) == (True, None)
    assert TABLE.parse(["--codec", "lz4"]).value("codec") == "lz4"


def test_an_abbreviation_must_be_clear() -> None:
    assert TABLE.parse(["--desc"]).has("describe")
    assert TABLE.parse(["--topic", "x"]).value("topic") == "x"
    with pytest.raises(
        OptionError, match=r"t is not a recognized option \(it could be: time, topic, topic-id\)"
    ):
        TABLE.parse(["--t", "x"])


def test_a_missing_value_and_a_second_one_are_refused() -> None:
    with pytest.raises(OptionError, match="Option topic requires an argument"):
        TABLE.parse(["--topic"])
    with pytest.raises(
        OptionError, match="Found multiple arguments for option topic, but you asked for only one"
    ):
        TABLE.parse(["--topic", "a", "--topic", "b"]).value("topic")


def test_words_after_two_dashes_are_no_options() -> None:
    assert not TABLE.parse(["--", "--describe"]).has("describe")


def test_a_line_is_taken_apart_from_the_left() -> None:
    reader = LineReader({"parse.key": "true", "key.separator": ":"})
    assert reader.read("a:b:c") == Record(b"a", b"b:c", [])
    assert reader.read(":x") == Record(b"", b"x", [])


def test_errors_are_ignored_when_asked() -> None:
    reader = LineReader({"parse.key": "true", "parse.headers": "true", "ignore.error": "true"})
    assert reader.read("plain") == Record(None, b"plain", [])
    assert reader.read("h\tk\tv") == Record(b"k", b"v", [("h", None)])


def test_a_header_without_a_value_names_its_line() -> None:
    reader = LineReader({"parse.headers": "true"})
    with pytest.raises(BadLine, match="No header key separator found in pair 'h' on line number 1"):
        reader.read("h\tv")


def test_separators_must_differ() -> None:
    with pytest.raises(UserError, match=r"headers\.delimiter and headers\.separator may not be equal"):
        LineReader({"headers.delimiter": ","})
    with pytest.raises(UserError, match=r"null\.marker and key\.separator may not be equal"):
        LineReader({"null.marker": "\t"})


def test_bytes_that_are_not_text_pass_unharmed() -> None:
    line = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert LineReader({}).read(line).value == b"\xff\xfe"


def test_java_s_names_become_librdkafka_s() -> None:
    given = {
        "fetch.max.wait.ms": "10",
        "key.deserializer": "a.B",
        "buffer.memory": "33554432",
        "sasl.mechanism": "PLAIN",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        "request.timeout.ms": "500",
    }
    assert to_librdkafka(given, role="consumer") == {
        "fetch.wait.max.ms": "10",
        "queue.buffering.max.kbytes": "32768",
        "partition.assignment.strategy": "cooperative-sticky",
        "socket.timeout.ms": "500",
    }
    assert to_librdkafka({"request.timeout.ms": "500"}, role="producer") == {"request.timeout.ms": "500"}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0"), (1.0, "1.0"), (0.001, "0.001"), (1e-4, "1.0E-4"), (1.5e10, "1.5E10"), (1234567.25, "1234567.25"),
     (1e7, "1.0E7"), (-2.5, "-2.5"), (float("nan"), "NaN"), (float("-inf"), "-Infinity")],
)  # fmt: skip
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_float(value) == text


def test_deserializers_are_known_by_kafka_s_class_names() -> None:
    def read(name: str, data: bytes) -> bytes:
        found = deserializer(f"org.apache.kafka.common.serialization.{name}Deserializer")
        assert found is not None
        return found(data)

    assert read("Long", struct.pack(">q", -5)) == b"-5"
    assert read("Short", b"\x00\x07") == b"7"
    assert read("Float", struct.pack(">f", 0.1)) == b"0.1"
    assert read("Double", struct.pack(">d", 0.1)) == b"0.1"
    assert read("Boolean", b"\x01") == b"true"
    assert read("Bytes", b"a\x00") == b"a\\x00"
    assert deserializer("com.acme.Own") is None


def test_strings_hash_and_sort_as_in_java() -> None:
    assert java_hash("hello") == 99162322
    settings = [
        "compression.type",
        "min.insync.replicas",
        "cleanup.policy",
        "segment.bytes",
        *map(str, range(29)),
    ]
    listed = [name for name in in_hash_map_order(settings) if not name.isdigit()]
    assert listed == ["compression.type", "min.insync.replicas", "cleanup.policy", "segment.bytes"]


def test_patterns_match_whole_names_and_commas_mean_or() -> None:
    names = ["b", "a", "ab", "__consumer_offsets"]
    assert chosen_topics(names, "a,b", exclude_internal=False) == ["a", "b"]
    assert chosen_topics(names, None, exclude_internal=True) == ["a", "ab", "b"]


def test_addresses_are_parsed() -> None:
    assert parse_addresses("a:1, [::1]:2,PLAINTEXT://c:3") == [
        Address("a", 1),
        Address("::1", 2),
        Address("c", 3),
    ]
    for bad in ("a", "a:", ":1", "a:0", "a:70000", ""):
        with pytest.raises(UserError):
            parse_addresses(bad)


def test_times_are_read_in_three_forms() -> None:
    assert parse_time("1700000000000", now_s=0) == 1700000000000
    assert parse_time("10m", now_s=1000) == 400_000
    assert parse_time("1970-01-01T00:00:01+00:00", now_s=0) == 1000
    with pytest.raises(UserError, match="is not a time"):
        parse_time("soon", now_s=0)


def test_an_old_spelling_is_read_as_the_new_one_with_kafkas_warning(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=PLAINTEXT\n")
    given = leader_election.TABLE.parse(["--admin.config", str(file)])
    given.modernise()
    assert capsys.readouterr().out == (
        "Option --admin.config has been deprecated and will be removed in a future version. "
        "Use --command-config instead.\n"
    )
    assert client_properties(given) == {"security.protocol": "PLAINTEXT"}


def test_both_spellings_at_once_are_refused() -> None:
    given = leader_election.TABLE.parse(["--admin.config", "a", "--command-config", "b"])
    with pytest.raises(
        UsageError, match=r"--command-config and --admin\.config cannot be specified together"
    ):
        given.modernise()


def test_an_alias_is_read_without_a_word_and_yields_to_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert get_offsets.TABLE.parse(["--broker-list", "a:1"]).value("bootstrap-server") == "a:1"
    both = get_offsets.TABLE.parse(["--broker-list", "a:1", "--bootstrap-server", "b:1"])
    assert both.value("bootstrap-server") == "b:1"
    assert capsys.readouterr().out == ""
