import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.telemetry.otlp import (
    FIELDS_AT_ONCE,
    MAX_ATTRIBUTES,
    MAX_FIELDS,
    MAX_TEXT_LENGTH,
    Kind,
    MetricsReader,
    Point,
)
from penstock.wire.errors import Malformed
from tests.unit.telemetry.protobuf import attribute, double, fixed, gauge, message, number, report, total


def read(data: bytes) -> list[Point]:
    return list(MetricsReader(pause=lambda: None).points(data))


def test_gauges_and_sums_are_read_with_the_attributes_of_point_and_resource() -> None:
    data = report(
        gauge("org.apache.kafka.producer.latency", double(4, 2.5) + attribute(7, "node_id", message(1, "1"))),
        total("org.apache.kafka.producer.sent", fixed(6, -7), fixed(3, 12345) + fixed(6, 8)),
        resource=attribute(1, "client_rack", message(1, "r1")),
    )
    rack = ("client_rack", "r1")
    assert read(data) == [
        Point("org.apache.kafka.producer.latency", Kind.GAUGE, (rack, ("node_id", "1")), 2.5),
        Point("org.apache.kafka.producer.sent", Kind.COUNTER, (rack,), -7.0),
        Point("org.apache.kafka.producer.sent", Kind.COUNTER, (rack,), 8.0),
    ]


def test_a_sum_may_be_a_difference_or_go_down() -> None:
    delta, up_and_down = read(
        report(
            total("a", double(4, 1.0), temporality=1),
            total("b", double(4, 1.0), is_monotonic=False),
        )
    )
    assert (delta.kind, delta.is_delta) == (Kind.COUNTER, True)
    assert (up_and_down.kind, up_and_down.is_delta) == (Kind.GAUGE, False)


def test_of_histograms_and_summaries_count_and_sum_are_read() -> None:
    histogram = message(
        2,
        message(1, "h"),
        message(9, message(1, fixed(4, 3), double(5, 1.5), attribute(9, "k", message(1, "v")))),
    )
    summary = message(
        2,
        message(1, "s"),
        message(11, message(1, fixed(4, 2), double(5, 0.5), attribute(7, "k", message(1, "v")))),
    )
    labels = (("k", "v"),)
    assert read(report(histogram, summary)) == [
        Point("h.count", Kind.COUNTER, labels, 3.0),
        Point("h.sum", Kind.GAUGE, labels, 1.5),
        Point("s.count", Kind.COUNTER, labels, 2.0),
        Point("s.sum", Kind.GAUGE, labels, 0.5),
    ]


def test_attributes_of_every_kind_become_text() -> None:
    point = double(4, math.nan) + b"".join(
        attribute(7, key, value)
        for key, value in {
            "text": message(1, "ä"),
            "flag": number(2, 1),
            "number": number(3, -5),
            "float": double(4, 0.25),
            "list": message(5, b""),
            "": message(1, "nameless"),
        }.items()
    )
    (found,) = read(report(gauge("g", point)))
    assert dict(found.attributes) == {
        "text": "ä",
        "flag": "true",
        "number": "-5",
        "float": "0.25",
        "list": "",
    }
    assert math.isnan(found.value)


def test_long_texts_and_many_attributes_are_cut() -> None:
    point = double(4, 1) + b"".join(attribute(7, f"k{i}", message(1, "v" * 5_000)) for i in range(100))
    (found,) = read(report(gauge("n" * 5_000, point)))
    assert len(found.name) == MAX_TEXT_LENGTH
    assert len(found.attributes) == MAX_ATTRIBUTES
    assert {len(value) for _, value in found.attributes} == {MAX_TEXT_LENGTH}


def test_what_is_unknown_is_skipped_and_a_point_without_a_value_is_none() -> None:
    unknown = number(99, 1) + message(98, "x") + fixed(97, 1) + b"\xa5\x06abcd"  # the last: 4 bytes
    assert read(unknown + report(unknown, gauge("g", unknown), gauge("h", double(4, 1) + unknown))) == [
        Point("h", Kind.GAUGE, (), 1.0)
    ]
    assert read(b"") == []


@pytest.mark.parametrize(
    "data", [b"\x0a\x05abc", b"\x0a", b"\x80" * 20, b"\x0b", message(1, message(2, message(2, b"\x0a\x7f")))]
)
def test_damage_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        read(data)


def test_a_pause_is_made_whether_or_not_there_are_points() -> None:
    pauses = []
    reader = MetricsReader(pause=lambda: pauses.append(1))
    assert list(reader.points(number(99, 0) * (3 * FIELDS_AT_ONCE))) == []
    assert len(pauses) == 3


def test_a_report_of_nothing_but_fields_has_an_end() -> None:
    with pytest.raises(Malformed, match="fields"):
        read(b"\x08\x00" * (MAX_FIELDS + FIELDS_AT_ONCE))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    for candidate in (data, report(gauge("g", data)), report(data)):
        try:
            read(candidate)
        except Malformed:
            pass
