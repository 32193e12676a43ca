"""What the group and transaction commands read and compute without a broker."""

import struct

import pytest

from penstock.admin.groups.described import assigned_partitions
from penstock.admin.groups.lag import Pace, Progress, topic_lags
from penstock.admin.groups.model import Committed, Coordinator, Description
from penstock.admin.groups.reset import parse_datetime_ms, parse_duration_ms, parse_topic
from penstock.cli.kafka.consumer_groups import regex_complaint
from penstock.cli.kafka.consumer_groups_reset import parse_plans
from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition
from penstock.model.java_order import partitions_in_hash_map_order
from penstock.wire.codec import encode
from penstock.wire.messages import consumer_protocol_assignment as protocol


@pytest.mark.parametrize(
    "pattern",
    [
        "a.*", "(?<n>a)", "(?P<n>a)", "(?i)a", "(?i-s:a)", "[[:alpha:]]", r"\p{L}", r"\pN", r"\p{^Greek}", "[^]a]",
        "a{,2}", "a{", "a??", "(|a)*", "()*", "^*", "a{2}?", r"\Q*", r"\12", "[a-]", "[--a]", r"[\d-z]", "a|", r"\_",
    ],
)  # fmt: skip
def test_a_pattern_of_re2_is_valid(pattern: str) -> None:
    assert regex_complaint(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("(a", "missing closing )"),
        ("a)", "regexp/syntax: internal error"),
        ("[a", "missing closing ]"),
        ("[]", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        ("x{2}{3}", "invalid nested repetition operator"),
        ("*a", "missing argument to repetition operator"),
        ("a|*", "missing argument to repetition operator"),
        ("(?i)*", "missing argument to repetition operator"),
        ("a{2,1}", "invalid repeat count"),
        ("a{1001}", "invalid repeat count"),
        ("\\", "trailing backslash at end of expression"),
        (r"\q", "invalid escape sequence"),
        (r"\1", "invalid escape sequence"),
        (r"\x{110000}", "invalid escape sequence"),
        (r"[a-\d]", "invalid escape sequence"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?P=n)", "invalid or unsupported Perl syntax"),
        ("[b-a]", "invalid character class range"),
        ("[[:foo:]]", "invalid character class range"),
        (r"\p{Foo}", "invalid character class range"),
        ("(?P<n", "invalid named capture"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
        ("orders-\udcff", "invalid UTF-8"),
    ],
)
def test_what_is_wrong_with_a_pattern_has_re2s_name(pattern: str, wrong: str) -> None:
    assert regex_complaint(pattern) == wrong


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [("PT1H", 3_600_000), ("P7DT1H30M", 610_200_000), ("PT1.5S", 1500), ("-PT5S", -5000), ("pt0.001s", 1)],
)
def test_durations_are_read_as_java_reads_them(text: str, expected_ms: int) -> None:
    assert parse_duration_ms(text) == expected_ms


@pytest.mark.parametrize("text", ["1h", "P", "PT", "P1DT", "", "PT1H "])
def test_a_wrong_duration_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="Text cannot be parsed to a Duration"):
        parse_duration_ms(text)


def test_a_time_without_a_zone_is_in_utc() -> None:
    assert parse_datetime_ms("2023-11-14T22:13:20.000") == 1_700_000_000_000
    assert parse_datetime_ms("2023-11-14T22:13:20Z") == 1_700_000_000_000
    assert parse_datetime_ms("2023-11-15T00:13:20.000+02:00") == 1_700_000_000_000
    with pytest.raises(UserError, match="Unparseable date"):
        parse_datetime_ms("2023-99-14T22:13:20.000")


def test_a_topic_may_name_partitions() -> None:
    assert parse_topic("orders") == ("orders", None)
    assert parse_topic("orders:0,2") == ("orders", [0, 2])
    for wrong in ("orders:", "orders:a", "orders:1:2", "orders:-1"):
        with pytest.raises(UserError):
            parse_topic(wrong)


def test_a_plan_is_read_for_one_group_or_for_several() -> None:
    orders = TopicPartition("orders", 0)
    assert parse_plans("orders,0,7\n\n", ["g"]) == {"g": {orders: 7}}
    assert parse_plans('"a, b",orders,0,7\n', ["g"]) == {"a, b": {orders: 7}}
    assert parse_plans("g,orders,0,7\nh,orders,0,8\n", ["g", "h"]) == {"g": {orders: 7}, "h": {orders: 8}}
    with pytest.raises(UserError, match=r"line 2 of the file, 'orders,x,1', is not topic,partition,offset"):
        parse_plans("orders,0,1\norders,x,1\n", ["g"])


def test_partitions_come_in_the_order_of_javas_map() -> None:
    partitions = [TopicPartition("pay", number) for number in range(2)]
    partitions += [TopicPartition("orders", number) for number in range(4)]
    partitions.append(TopicPartition("a.long.topic.name.that.is.longer", 0))
    assert [str(one) for one in partitions_in_hash_map_order(partitions)] == [
        "a.long.topic.name.that.is.longer-0", "pay-0", "pay-1", "orders-0", "orders-1", "orders-2", "orders-3",
    ]  # fmt: skip


def test_an_assignment_is_read_and_a_strange_one_is_empty() -> None:
    assigned = protocol.ConsumerProtocolAssignment(
        assigned_partitions=[protocol.TopicPartition(topic="t", partitions=[0, 2])]
    )
    data = encode(assigned, 1)
    assert assigned_partitions(struct.pack(">h", 1) + data) == [("t", 0), ("t", 2)]
    assert assigned_partitions(struct.pack(">h", 9) + data) == [("t", 0), ("t", 2)]
    for strange in (b"", b"\0", b"\0\1", b"\xff\xff\0\0", b"\0\1\x7f\xff\xff\xff"):
        assert assigned_partitions(strange) == []


def _look(committed: int) -> list[tuple[Description, list[Progress]]]:
    group = Description("g", "Classic", "Empty", "", Coordinator(1, "h", 1), [])
    rows = [
        Progress(TopicPartition("t", 0), Committed(committed, None), 100, None),
        Progress(TopicPartition("t", 1), None, 100, None),
    ]
    return [(group, rows)]


def test_lag_is_summed_by_topic_over_what_is_known() -> None:
    (one,) = topic_lags(_look(40))
    assert (one.topic, one.partitions, one.members, one.lag) == ("t", 2, 0, 60)


def test_the_pace_is_what_was_committed_between_two_looks() -> None:
    pace = Pace()
    pace.look(_look(40), 10.0)
    assert pace.per_second == {}
    pace.look(_look(90), 12.0)
    assert pace.per_second == {("g", "t"): 25.0}
