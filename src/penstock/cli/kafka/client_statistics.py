"""What a client of librdkafka says of itself: as the `--print-metrics` of the performance tools shows it, under
librdkafka's names, and whether it is ready."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

DEADLINE_S = 5.0
POLL_S = 0.1
ASSIGNED = "Assigned"
SETTINGS = {"statistics.interval.ms": "100"}
"""What the client has to be made with."""


class ClientStatistics:
    """For a client's `stats_cb`; the newest report counts."""

    def __init__(self) -> None:
        self._report: str | None = None

    def __call__(self, report: str) -> None:
        self._report = report

    def show(self, poll: Callable[[float], object]) -> None:
        lines = sorted(_numbers("", self._next(poll)))
        width = max((len(name) for name, _ in lines), default=0)
        print(f"\n{'Metric Name':<{width}}   Value")
        for name, value in lines:
            print(f"{name:<{width}} : {value:.3f}")

    def await_producer_id(self, poll: Callable[[float], object]) -> None:
        """librdkafka takes half a second to become idempotent, in which records only wait."""
        deadline_s = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline_s:
            if self._next(poll).get("eos", {}).get("idemp_state") == ASSIGNED:
                return

    def _next(self, poll: Callable[[float], object]) -> dict[str, Any]:
        """A report from now on, which has everything that was done; empty when none comes."""
        self._report = None
        deadline_s = time.monotonic() + DEADLINE_S
        while self._report is None and time.monotonic() < deadline_s:
            poll(POLL_S)
        report: dict[str, Any] = json.loads(self._report or "{}")
        return report


def _numbers(path: str, node: Any) -> Iterator[tuple[str, float]]:
    if isinstance(node, dict):
        for name, below in node.items():
            yield from _numbers(f"{path}:{name}" if path else name, below)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield path, node
