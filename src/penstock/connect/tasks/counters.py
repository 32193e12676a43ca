"""What a task counts, under the names of Kafka Connect's metrics. Read by another thread while the task adds to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SOURCE_NAMES: Final = ("source-record-poll-total", "source-record-write-total")
SINK_NAMES: Final = ("sink-record-read-total", "sink-record-send-total", "partition-count")
_TASK: Final = (
    "batch-size-max", "batch-size-avg", "offset-commit-success", "offset-commit-failure", "offset-commit-max-time-ms",
    "offset-commit-avg-time-ms",
)  # fmt: skip
_ERRORS: Final = (
    "total-errors-logged", "total-record-errors", "total-record-failures", "total-records-skipped", "total-retries",
    "deadletterqueue-produce-requests", "deadletterqueue-produce-failures", "last-error-timestamp",
)  # fmt: skip


class Counters:
    """Most go on over a task's restarts."""

    def __init__(self) -> None:
        self._numbers: dict[str, float] = dict.fromkeys((*_TASK, *_ERRORS), 0)
        self._samples: dict[str, tuple[int, float]] = {}

    def begin(self, names: Iterable[str]) -> None:
        for name in names:
            self._numbers.setdefault(name, 0)

    def add(self, name: str, number: int = 1) -> None:
        self._numbers[name] = self._numbers.get(name, 0) + number

    def set(self, name: str, number: float) -> None:
        self._numbers[name] = number

    def sample(self, name: str, number: float, unit: str = "") -> None:
        """For NAME-max and NAME-avg; with a unit of time NAME-max-time-ms and NAME-avg-time-ms."""
        count, total = self._samples.get(name, (0, 0.0))
        self._samples[name] = (count + 1, total + number)
        highest, average = f"{name}-max{unit}", f"{name}-avg{unit}"
        self._numbers[highest] = round(max(self._numbers.get(highest, 0), number), 3)
        self._numbers[average] = round((total + number) / (count + 1), 3)

    def took(self, name: str, seconds: float) -> None:
        self.sample(name, seconds * 1000, "-time-ms")

    def __getitem__(self, name: str) -> float:
        return self._numbers.get(name, 0)

    def read(self) -> dict[str, float]:
        return dict(self._numbers)
