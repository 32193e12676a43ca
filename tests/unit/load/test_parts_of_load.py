"""The parts of the performance tools: how they wait, what they keep, and the lines that they print."""

import threading
from datetime import datetime

import pytest

from penstock.load.measuring import Latencies, Throughput
from penstock.load.statistics import SendStatistics
from penstock.model.java_dates import date_text

MEGABYTE = 1024 * 1024


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def pause(self, pause_s: float) -> None:
        self.now_s += pause_s


def test_a_throughput_holds_on_the_whole() -> None:
    clock = Clock()
    pace = Throughput(50, clock=clock)
    for sent in range(101):
        pace.wait(sent, clock.pause)
    assert clock.now_s - 100 == pytest.approx(2.0, abs=0.003)
    clock.now_s += 1
    pace.wait(150, clock.pause)
    assert clock.now_s - 100 == pytest.approx(3.0, abs=0.003)


def test_no_throughput_is_no_limit_and_zero_lets_one_record_go() -> None:
    clock = Clock()
    Throughput(-1, clock=clock).wait(10**9, clock.pause)
    assert clock.now_s == 100.0
    stopped = threading.Event()
    none = Throughput(0, clock=clock)
    none.wait(0, clock.pause, stopped.is_set)
    assert clock.now_s == 100.0

    def pause(pause_s: float) -> None:
        clock.pause(pause_s)
        if clock.now_s > 105:
            stopped.set()

    none.wait(1, pause, stopped.is_set)
    assert clock.now_s > 105


def test_latencies_keep_a_bounded_number_of_samples() -> None:
    latencies = Latencies(1000, max_samples=10)
    for number in range(1000):
        latencies.add(float(number))
    assert len(latencies._samples) == 10
    assert latencies.percentiles_ms(0.5, 0.99) == [500, 900]
    assert (latencies.count, latencies.average_ms, latencies.max_ms) == (1000, 499.5, 999.0)
    assert Latencies(5).percentiles_ms(0.5) == [0]


def test_all_latencies_are_kept_where_there_is_room() -> None:
    latencies = Latencies(100)
    for number in range(100):
        latencies.add(float(number))
    assert latencies.percentiles_ms(0.5, 0.95, 0.99, 0.999) == [50, 95, 99, 99]


def test_the_lines_of_the_producer_test_are_kafka_s(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    statistics = SendStatistics(300, warmup=0, interval_s=5.0, say=print, clock=clock)
    for number in range(150):
        statistics.add(MEGABYTE, 7.0 if number else 40.0)
    statistics.report()
    assert capsys.readouterr().out == ""
    clock.now_s += 5
    statistics.report()
    statistics.report()
    assert capsys.readouterr().out == (
        "150 records sent, 30.0 records/sec (30.00 MB/sec), 7.2 ms avg latency, 40.0 ms max latency.\n"
    )
    for _ in range(150):
        statistics.add(0, 7.0)
    clock.now_s += 5
    statistics.summarise()
    assert capsys.readouterr().out == (
        "300 records sent, 30.000000 records/sec (15.00 MB/sec), 7.11 ms avg latency, 40.00 ms max latency, "
        "7 ms 50th, 7 ms 95th, 7 ms 99th, 40 ms 99.9th.\n"
    )


def test_the_steady_state_begins_after_the_warmup(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    statistics = SendStatistics(20, warmup=10, interval_s=1.0, say=print, clock=clock)
    for _ in range(10):
        statistics.add(1, 100.0)
    clock.now_s += 10
    for _ in range(10):
        statistics.add(1, 1.0)
    clock.now_s += 5
    statistics.report()
    assert capsys.readouterr().out.startswith("In steady state.\n20 records sent, 1.3 records/sec")
    statistics.summarise()
    whole, steady = capsys.readouterr().out.splitlines()
    assert whole.startswith("20 records sent, 1.333333 records/sec")
    assert steady.startswith(
        "10 steady state records sent, 2.000000 records/sec (0.00 MB/sec), 1.00 ms avg latency"
    )


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2026-03-07 15:04:05:678"),
        ("d.M.yy h'h' m s a", "7.3.26 3h 4 5 PM"),
        ("EEE, MMM d ''yy 'at' DDD", "Sat, Mar 7 '26 at 066"),
    ],
)
def test_dates_are_written_as_java_does(pattern: str, text: str) -> None:
    assert date_text(pattern, datetime(2026, 3, 7, 15, 4, 5, 678_901)) == text


@pytest.mark.parametrize("pattern", ["yyyy'", "yyyy B"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"an unterminated quote|a letter that is not known"):
        date_text(pattern, datetime(2026, 3, 7))
