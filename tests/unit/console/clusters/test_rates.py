"""Rates of counters."""

from penstock.console.clusters.metrics_pages import read_counters
from penstock.console.clusters.rates import Rates, total


def test_a_rate_is_what_was_added_by_the_time_that_passed() -> None:
    rates: Rates[str] = Rates()
    assert rates.look({"a": 10.0}, 100.0) == {}
    assert rates.look({"a": 40.0, "new": 7.0}, 110.0) == {"a": 3.0}


def test_a_counter_that_began_anew_has_no_rate_until_the_next_look() -> None:
    rates: Rates[str] = Rates()
    rates.look({"a": 100.0}, 0.0)
    assert rates.look({"a": 5.0}, 1.0) == {}
    assert rates.look({"a": 6.0}, 2.0) == {"a": 1.0}


def test_a_clock_that_stands_still_gives_no_rate() -> None:
    rates: Rates[str] = Rates()
    rates.look({"a": 1.0}, 5.0)
    assert rates.look({"a": 2.0}, 5.0) == {}


def test_nothing_known_has_no_sum() -> None:
    assert total({}) is None
    assert total({"a": 1.0, "b": 2.0}) == 3.0


def test_of_a_metrics_page_only_the_sums_of_the_broker_are_read() -> None:
    page = """# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total 100.0
kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 60.0
kafka_server_brokertopicmetrics_bytesout_total 7.5 1700000000000
kafka_network_requestmetrics_requests_total{request="Produce",version="9"} 3.0
kafka_network_requestmetrics_requests_total{request="Fetch",version="13"} 4.0
kafka_network_requestmetrics_requests_total{request="Broken"} many
process_cpu_seconds_total 9.0
"""
    assert read_counters(page.splitlines()) == {"bytes_in": 100.0, "bytes_out": 7.5, "requests": 7.0}
