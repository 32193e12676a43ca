import pytest

from bench.__main__ import measured_at
from bench.measure import Row, Sample, Scale, percentile
from bench.report import SECURITY, markdown, merge, summarise_all, table_line
from bench.runner import Results, turn_of
from bench.workloads import WORKLOADS
from bench.workloads.start import StartToFirstAck

START = StartToFirstAck()


def results_of(**seconds: list[float]) -> Results:
    results = Results()
    for server, values in seconds.items():
        for value in values:
            results.add(START.name, server, Sample({"seconds": value}, {"seconds": value / 2}))
    return results


def test_a_row_compares_the_medians_of_the_rounds() -> None:
    (line,) = summarise_all([START], results_of(kafka=[2.0, 9.0, 1.0], penstock=[0.1, 0.2, 0.3]), "today")
    assert line["ratio"] == pytest.approx(0.1)
    assert line["met"] is True
    assert table_line(line).startswith(
        "| start to first acknowledged record, s | 2.00 | 0.2 | 0.10 × | ≤ 0.15 × | yes |"
    )


def test_a_server_that_failed_leaves_a_gap_and_no_verdict() -> None:
    results = results_of(kafka=[2.0])
    results.failures.append("start on Penstock: it did not start\nand more")
    lines = summarise_all([START], results, "today")
    assert lines[0]["met"] is None
    assert "- start on Penstock: it did not start\n" in markdown(lines, {}, results, Scale(quick=False))


def test_more_is_better_only_where_it_is() -> None:
    faster, later = Row("a", "", "MB/s", "higher", 1.2), Row("b", "", "ms", "lower", 0.5)
    assert [faster.is_met(1.2), faster.is_met(1.1), later.is_met(0.5), later.is_met(0.6)] == [
        True,
        False,
        True,
        False,
    ]


def test_percentiles_are_nearest_ranks() -> None:
    ordered = [float(number) for number in range(1, 1001)]
    assert [percentile(ordered, fraction) for fraction in (0.5, 0.99, 0.999, 1.0)] == [500, 990, 999, 1000]


def test_the_servers_take_turns_in_going_first() -> None:
    names = ["kafka", "penstock"]
    first = [turn_of(START, names, round_number=number, index=0)[0] for number in range(4)]
    assert first == ["kafka", "penstock", "kafka", "penstock"]


def test_workload_names_are_unique_and_their_row_keys_too() -> None:
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)
    for workload in WORKLOADS:
        assert len({row.key for row in workload.rows}) == len(workload.rows)


def test_rows_of_a_busy_machine_say_so() -> None:
    assert measured_at("today", busiest=0.1) == "today"
    assert measured_at("today", busiest=0.1, rounds=1) == "today, 1 round only"
    assert measured_at("today", busiest=0.98) == "today, while others kept up to 98% of the cores busy"


def test_a_partial_run_replaces_its_own_workloads_and_keeps_the_others() -> None:
    earlier = [
        {"workload": "start", "row": "seconds", "measured": "yesterday"},
        {"workload": "java-100B-1p-none", "row": "produce", "measured": "yesterday"},
        {"workload": "no longer there", "row": "x", "measured": "yesterday"},
    ]
    now = summarise_all([START], results_of(kafka=[2.0], penstock=[0.1]), "today")
    merged = merge(WORKLOADS, earlier, now)
    assert [(line["workload"], line["measured"]) for line in merged] == [
        ("java-100B-1p-none", "yesterday"),
        ("start", "today"),
    ]


def test_what_security_costs_has_a_section_of_its_own() -> None:
    secured = [workload for workload in WORKLOADS if workload.name in SECURITY]
    assert {workload.name for workload in secured} == set(SECURITY)
    results = results_of(kafka=[2.0], penstock=[1.0])
    for workload in secured:
        for server in ("kafka", "penstock"):
            results.add(workload.name, server, Sample({row.key: 1.0 for row in workload.rows}))
    lines = summarise_all(WORKLOADS, results, "today")
    before, _, section = markdown(lines, {}, results, Scale(quick=False)).partition("## Security\n")
    for workload in secured:
        for row in workload.rows:
            assert f"| {row.label}," in section
            assert f"| {row.label}," not in before
    assert "start to first acknowledged record" in before
