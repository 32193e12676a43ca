import pytest

from penstock.telemetry import reports as module
from penstock.telemetry.otlp import Kind, Point
from penstock.telemetry.reports import Reports

EXPIRY_MS = 60_000


def point(name: str, value: float = 1.0, *, is_delta: bool = False) -> Point:
    return Point(name, Kind.COUNTER, (("k", "v"),), value, is_delta)


def put(reports: Reports, client: str, *points: Point, now_ms: int = 0) -> None:
    reports.put(client, f"id-of-{client}", points, now_ms=now_ms, expiry_ms=EXPIRY_MS)


def values(reports: Reports, now_ms: int = 0) -> dict[str, dict[str, float]]:
    return {
        report.client_instance_id: {series.name: series.value for series in report.series}
        for report in reports.snapshot(now_ms)
    }


def test_the_last_value_of_each_series_counts_and_differences_add_up() -> None:
    reports = Reports()
    put(reports, "c", point("a", 1), point("b", 2), point("d", 5, is_delta=True))
    put(reports, "c", point("a", 3), point("d", 2, is_delta=True))
    assert values(reports) == {"c": {"a": 3, "b": 2, "d": 7}}
    assert (reports.received, reports.series_count, len(reports)) == (2, 3, 1)


def test_a_silent_client_and_a_series_that_ended_are_forgotten() -> None:
    reports = Reports()
    put(reports, "gone", point("a"))
    put(reports, "stays", point("a"), point("ended"))
    put(reports, "stays", point("a"), now_ms=EXPIRY_MS - 1)
    assert values(reports, EXPIRY_MS) == {"stays": {"a": 1}}
    assert reports.series_count == 1


def test_there_are_bounds_on_clients_and_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLIENTS", 2)
    monkeypatch.setattr(module, "MAX_SERIES_PER_CLIENT", 3)
    monkeypatch.setattr(module, "MAX_SERIES", 5)
    reports = Reports()
    put(reports, "a", *(point(str(i)) for i in range(10)))
    assert (len(values(reports)["a"]), reports.dropped_series) == (3, 7)
    put(reports, "b", *(point(str(i)) for i in range(3)))
    assert (len(values(reports)["b"]), reports.dropped_series) == (2, 8)
    put(reports, "c", point("0"))
    assert set(values(reports)) == {"b", "c"}  # a reported longest ago
    assert reports.series_count == 3
    put(reports, "c", point("0", 9))  # what is known is always updated
    assert values(reports)["c"] == {"0": 9}


def test_a_report_that_was_cut_counts() -> None:
    reports = Reports()
    reports.put("c", "c", [], now_ms=0, expiry_ms=EXPIRY_MS, is_cut=True)
    assert reports.dropped_series == 1


def test_there_are_bounds_on_the_text_of_all_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """A series may have 64 attributes of 512 characters: counted as one among 20,000 it would be 650 MB in the end."""
    monkeypatch.setattr(module, "MAX_CHARACTERS_PER_CLIENT", 300)
    monkeypatch.setattr(module, "MAX_CHARACTERS", 500)
    reports = Reports()
    put(reports, "a", *(point(str(i) * 98) for i in range(5)))  # 100 characters each
    put(reports, "b", *(point(str(i) * 98) for i in range(5)))
    assert [len(series) for series in values(reports).values()] == [3, 2]
    assert (reports.characters, reports.dropped_series) == (500, 5)
    put(reports, "b", point("0" * 98, 2), now_ms=1)  # what is known is always updated
    assert values(reports, EXPIRY_MS) == {"b": {"0" * 98: 2}}
    assert reports.characters == 100
    assert values(reports, EXPIRY_MS + 1) == {}
    assert reports.characters == 0


def test_a_long_client_id_is_cut() -> None:
    reports = Reports()
    reports.put("c", "x" * 32_000, [point("a")], now_ms=0, expiry_ms=EXPIRY_MS)
    (report,) = reports.snapshot(0)
    assert report.client_id == "x" * module.MAX_CLIENT_ID_LENGTH
