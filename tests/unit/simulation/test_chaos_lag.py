from typing import Any

import pytest

from simulation.chaos.loop_lag import LagWatch, quantile


def page(*counts: int) -> str:
    bounds = ("0.001", "0.01", "0.1", "+Inf")
    lines = zip(bounds, counts, strict=True)
    return "".join(f'penstock_event_loop_lag_seconds_bucket{{le="{le}"}} {n}.0\n' for le, n in lines)


def test_a_quantile_lies_in_its_bucket() -> None:
    buckets = {0.001: 900, 0.01: 990, 0.1: 1000, float("inf"): 1000}
    assert quantile(buckets, 0.5) == pytest.approx(0.000556, rel=0.01)
    assert quantile(buckets, 0.99) == pytest.approx(0.01)
    assert quantile(buckets, 0.999) == pytest.approx(0.091)
    assert quantile({}, 0.999) == 0.0
    assert quantile({0.001: 0, float("inf"): 5}, 0.5) == 0.001


def test_what_a_paused_broker_missed_is_left_out_and_a_new_process_counts_from_zero() -> None:
    pauses = {1: 0}
    cluster: Any = None
    watch = LagWatch(cluster, pauses)

    def look(*counts: int) -> dict[float, int]:
        watch.look(1, lambda broker_id: page(*counts))
        return watch.buckets("lag")

    assert look(10, 10, 10, 10)[0.001] == 10
    assert look(20, 21, 21, 21)[0.01] == 21
    pauses[1] = 1
    look(25, 30, 30, 30)
    pauses[1] = 2
    assert look(26, 31, 31, 90)[float("inf")] == 21
    assert look(30, 35, 35, 94) == {0.001: 24, 0.01: 25, 0.1: 25, float("inf"): 25}
    assert look(5, 5, 5, 5)[0.001] == 29  # it was killed and started again


def test_a_look_that_a_paused_broker_did_not_answer_does_not_hide_the_pause() -> None:
    pauses = {1: 0}
    cluster: Any = None
    watch = LagWatch(cluster, pauses)
    watch.look(1, lambda broker_id: page(10, 10, 10, 10))

    def gone(broker_id: int) -> str:
        pauses[1] = 2  # paused and resumed meanwhile
        raise TimeoutError

    watch.look(1, gone)
    watch.look(1, lambda broker_id: page(20, 20, 20, 21))
    assert watch.buckets("lag")[float("inf")] == 10
    watch.look(1, lambda broker_id: page(22, 22, 22, 23))
    assert watch.buckets("lag")[float("inf")] == 12
