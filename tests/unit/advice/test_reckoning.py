"""What is wanted, and what it takes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.advice.doctor.facts import ReplicaFacts
from penstock.advice.plan import Advice, Assumptions, Wanted, plan
from penstock.advice.plan.arithmetic import divisible, segment_bytes
from penstock.advice.plan.limits import check
from penstock.advice.plan.measured import as_wanted, measure
from penstock.advice.plan.units import parse_share, parse_size, parse_span, parse_throughput, size, span
from penstock.client.errors import UserError
from tests.unit.advice.ill_cluster import facts, partition, topic, very_ill

MB, TB = 1e6, 1e12
ISSUE = Wanted(
    bytes_per_s=50 * MB,
    record_bytes=1000,
    consumers=12,
    broker_disk_bytes=12 * TB,
    broker_cores=8,
    growth_per_year=0.2,
)
"""The example of the help."""

wants = st.builds(
    Wanted,
    bytes_per_s=st.floats(0, 1e12),
    record_bytes=st.floats(1, 1e7),
    retention_s=st.floats(0, 1e8),
    replication=st.integers(1, 6),
    consumers=st.integers(0, 5_000),
    groups=st.integers(0, 50),
    broker_disk_bytes=st.none() | st.floats(1e6, 1e15),
    broker_cores=st.none() | st.integers(1, 128),
    growth_per_year=st.floats(0, 3),
    years=st.floats(0, 5),
    headroom=st.floats(0, 5),
    compression=st.floats(0.5, 20),
    partitions_now=st.integers(0, 100_000),
    brokers_now=st.integers(0, 500),
    assumptions=st.just(Assumptions()),
)


def takes(advice: Advice) -> tuple[float, ...]:
    return advice.partitions, advice.brokers, advice.disk_bytes, advice.planned_bytes_per_s


@given(
    wants, st.sampled_from(["bytes_per_s", "retention_s", "headroom", "growth_per_year"]), st.floats(1, 10)
)
def test_more_of_anything_never_takes_less(wanted: Wanted, field: str, times: float) -> None:
    more = wanted._replace(**{field: getattr(wanted, field) * times})
    assert all(b >= a * (1 - 1e-12) for a, b in zip(takes(plan(wanted)), takes(plan(more)), strict=True))


@given(
    wants,
    st.sampled_from(["replication", "consumers", "groups", "partitions_now", "brokers_now"]),
    st.integers(1, 50),
)
def test_one_more_of_what_is_counted_never_takes_less(wanted: Wanted, field: str, more: int) -> None:
    grown = wanted._replace(**{field: getattr(wanted, field) + more})
    assert all(b >= a * (1 - 1e-12) for a, b in zip(takes(plan(wanted)), takes(plan(grown)), strict=True))


@given(wants)
def test_a_plan_holds_what_is_asked_of_it(wanted: Wanted) -> None:
    advice = plan(wanted)
    assumed = wanted.assumptions
    assert advice.brokers >= advice.replication > advice.min_isr or advice.replication == advice.min_isr == 1
    assert advice.partitions >= max(1, wanted.consumers, wanted.partitions_now)
    assert advice.planned_bytes_per_s <= advice.partitions * assumed.partition_bytes_per_s * (1 + 1e-9)
    assert advice.network_in_bytes_per_s <= assumed.network_bytes_per_s * (1 + 1e-6)
    assert advice.network_out_bytes_per_s <= assumed.network_bytes_per_s * (1 + 1e-6)
    assert advice.replicas_per_broker <= assumed.replicas_per_broker
    if wanted.broker_disk_bytes is not None:
        assert advice.disk_bytes_per_broker <= wanted.broker_disk_bytes * (1 + 1e-6)
    assert all(line.what and line.arithmetic and line.result for line in advice.lines)
    assert advice.brokers == max(number for _, number in advice.brokers_by)


def test_the_example_of_the_help_is_reckoned_as_by_hand() -> None:
    advice = plan(ISSUE)
    assert advice.planned_bytes_per_s == pytest.approx(78 * MB)  # 50 × 1.3 × 1.2
    assert advice.records_per_s == pytest.approx(78_000)
    kept = 50 * MB * 1.2 * 7 * 86_400
    assert advice.disk_bytes == pytest.approx(kept * 3 * 1.05 / 0.75)
    assert advice.brokers == math.ceil(kept * 3 * 1.05 / 0.75 / (12 * TB)) == 13
    assert advice.partitions == 18  # 12 consumers, 13 brokers, and a number that divides well
    assert (advice.replication, advice.min_isr) == (3, 2)
    assert advice.commands[-1].startswith(
        "penstock topics create TOPIC --partitions 18 --replication-factor 3 "
    )


def test_the_lines_show_the_figures_that_were_put_in() -> None:
    text = "\n".join(map(str, plan(ISSUE).lines))
    for figure in (
        "50 MB/s × 1.3 (headroom) × 1.2 (growth, 1 year)",
        "60 MB/s × 7 days",
        "÷ 12 TB",
        "8 cores × 150 MB/s × 0.6",
    ):
        assert figure in text


def test_the_disk_grows_from_year_to_year() -> None:
    advice = plan(ISSUE._replace(years=3))
    assert len(advice.disk_by_year) == 4
    assert advice.disk_by_year[3] == pytest.approx(advice.disk_bytes)
    assert advice.disk_by_year == tuple(sorted(advice.disk_by_year))


def test_what_is_unwise_in_a_plan_is_said() -> None:
    told = " ".join(plan(ISSUE._replace(replication=1, record_bytes=2e6, brokers_now=2)).warnings)
    assert "one replica" in told
    assert "max.message.bytes" in told
    assert "more are needed" in told


def test_a_rule_of_thumb_can_be_another() -> None:
    slow = plan(ISSUE._replace(assumptions=Assumptions(partition_bytes_per_s=1 * MB)))
    assert slow.partitions == divisible(78)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bytes_per_s", -1),
        ("bytes_per_s", math.nan),
        ("retention_s", math.inf),
        ("replication", 0),
        ("compression", 0),
        ("years", 51),
    ],
)
def test_figures_that_cannot_be_are_named(field: str, value: float) -> None:
    with pytest.raises(UserError):
        plan(ISSUE._replace(**{field: value}))


def test_numbers_divide_well() -> None:
    assert [divisible(number) for number in (0, 1, 5, 7, 13, 100, 121, 1000)] == [
        1,
        1,
        6,
        8,
        18,
        120,
        240,
        1080,
    ]


def test_segments_suit_the_retention() -> None:
    assert segment_bytes(0) == segment_bytes(1e15) == 1 << 30
    assert segment_bytes(1) == 64 << 20
    assert segment_bytes(20 * (200 << 20)) == 128 << 20


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("2TB", 2e12), ("1 KiB", 1024), ("1000", 1000), ("1.5gb", 1.5e9), ("1_000 b", 1000), ("64M", 64e6)],
)
def test_sizes_are_read(text: str, bytes_: float) -> None:
    assert parse_size(text) == bytes_


@pytest.mark.parametrize(
    ("text", "per_s"),
    [("50MB/s", 50e6), ("50MB", 50e6), ("20000 records/s", 2e7), ("20k records/s", 2e7), ("10 msg/sec", 1e4)],
)
def test_throughputs_are_read(text: str, per_s: float) -> None:
    assert parse_throughput(text, 1000) == per_s


@pytest.mark.parametrize("text", ["", "MB", "5 parsecs", "-3MB", "1e5", "5 MB per minute", "NaN", "1" * 400])
def test_what_is_no_figure_is_refused_in_one_line(text: str) -> None:
    for parse in (parse_size, parse_span, parse_share, lambda text: parse_throughput(text, 1000)):
        with pytest.raises(UserError) as refused:
            parse(text)
        assert "\n" not in str(refused.value)


def test_times_and_shares_are_read_and_written() -> None:
    assert (parse_span("7d"), parse_span("12 hours"), parse_span("90min")) == (604_800, 43_200, 5_400)
    assert (parse_share("20%/year"), parse_share("0.2")) == (0.2, 0.2)
    assert (span(604_800), span(5_400), span(2), size(1.5e12), size(999)) == (
        "7 days",
        "1.5 h",
        "2 s",
        "1.5 TB",
        "999 B",
    )


def test_a_running_cluster_is_measured_between_two_looks() -> None:
    part = partition("orders", end_before=1_000, end_offset=11_000)
    copies = tuple(ReplicaFacts(each, "/d", part.partition, 12_000_000, 2_000_000) for each in part.replicas)
    measured = measure(facts(partitions=(part,), replicas=copies))
    assert (measured.bytes_per_s, measured.records_per_s) == (1e6, 1000)
    wanted = as_wanted(measured, Wanted(0, broker_disk_bytes=None))
    assert (wanted.bytes_per_s, wanted.record_bytes, wanted.retention_s) == (1e6, 1000, 604_800)
    assert (wanted.replication, wanted.brokers_now, wanted.broker_disk_bytes) == (3, 3, 1e12)


def test_a_partition_that_retention_shrank_is_measured_by_its_records() -> None:
    part = partition("orders", start_offset=1_000, end_before=1_900, end_offset=2_000)
    copies = (ReplicaFacts(part.leader, "/d", part.partition, 1_000_000, 5_000_000),)
    assert measure(facts(partitions=(part,), replicas=copies)).bytes_per_s == 10_000


def test_a_cluster_within_the_usual_has_no_warnings_and_one_beyond_it_has() -> None:
    assert check(measure(facts())) == []
    kept = sum(1 in part.replicas for part in very_ill().partitions)
    found = check(measure(very_ill()))
    assert {finding.title for finding in found} >= {
        "a partition of hot gets more than 10 MB/s",
        f"broker 1 keeps {kept:,} replicas",
        "the disks of broker 1 are 98% full",
        "many has 5,000 partitions",
    }
    assert check(measure(facts(topics=(topic("orders"),))), Assumptions(replicas_per_broker=1))
