"""What those who send and read records share beside librdkafka's clients: errors, statistics, batches."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from penstock.client.error_names import detail
from penstock.client.errors import Unreachable

# librdkafka's wait does not see signals: it is ended this often to look.
POLL_S = 0.1
MAX_RECORDS = 500
TOPIC_PATIENCE = {"topic.metadata.propagation.max.ms": "5000"}
"""So long a topic may be unknown, because it is just being made; librdkafka's own choice is half a minute."""
PRODUCER_DEFAULTS = {**TOPIC_PATIENCE, "partitioner": "murmur2_random"}
"""Java's producer puts a key on the same partition as every other Java client does; so do the tools."""
FLUSH_TIMEOUT_S = 130.0
"""Longer than a record may take to be delivered."""
REPORT_DEADLINE_S = 5.0
ASSIGNED = "Assigned"
STATISTICS_SETTINGS = {"statistics.interval.ms": "100"}
"""What a client has to be made with for `ClientStatistics`."""


class ClientErrors:
    """For a client's `error_cb`. A line is told once, however often it comes."""

    def __init__(self, complain: Callable[[str], object]) -> None:
        self._complain = complain
        self._fatal: str | None = None
        self._told: set[str] = set()

    def __call__(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        code = error.code()
        if code in (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._FATAL):
            self._fatal = f"the broker does not let us in: {error.str()}"
        elif code not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._PARTITION_EOF):
            self.tell(f"WARN {reason(error)}")

    def tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._complain(line)

    @property
    def is_fatal(self) -> bool:
        return self._fatal is not None

    def check(self) -> None:
        """Unreachable when there is no use in going on."""
        if self._fatal is not None:
            raise Unreachable(self._fatal)


def reason(error: Any) -> str:
    """A KafkaError in Kafka's words where the broker said it, in librdkafka's where the client did."""
    from confluent_kafka import KafkaError

    code, text = error.code(), str(error.str())
    if code in (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
        return detail(KafkaError.UNKNOWN_TOPIC_OR_PART)
    return detail(code) if code > 0 and text.startswith("Broker: ") else text.removeprefix("Local: ")


def flush(producer: Any, is_over: Callable[[], bool], timeout_s: float = FLUSH_TIMEOUT_S) -> int:
    """Waits until all records are answered or it is over; how many are not."""
    deadline_s = time.monotonic() + timeout_s
    while (left := int(producer.flush(POLL_S))) and time.monotonic() < deadline_s:
        if is_over():
            break
    return left


def poll_batch(consumer: Any, wait_s: float, wanted: int = MAX_RECORDS) -> list[Any]:
    """Records by the many, though it waits for the first one only. Errors are among them: look at `error()`."""
    first = consumer.poll(wait_s)
    if first is None:
        return []
    more = min(wanted, MAX_RECORDS) - 1
    return [first, *(consumer.consume(more, 0) if more > 0 else ())]


class ClientStatistics:
    """For a client's `stats_cb`; the newest report counts."""

    def __init__(self) -> None:
        self._report: str | None = None

    def __call__(self, report: str) -> None:
        self._report = report

    def lines(self, poll: Callable[[float], object]) -> list[str]:
        """All numbers by their names, as Kafka's tools print metrics."""
        numbers = sorted(_numbers("", self._next(poll)))
        width = max((len(name) for name, _ in numbers), default=0)
        heading = f"\n{'Metric Name':<{width}}   Value"
        return [heading, *(f"{name:<{width}} : {value:.3f}" for name, value in numbers)]

    def await_producer_id(self, poll: Callable[[float], object]) -> None:
        """librdkafka takes half a second to become idempotent, in which records only wait."""
        deadline_s = time.monotonic() + REPORT_DEADLINE_S
        while time.monotonic() < deadline_s:
            if self._next(poll).get("eos", {}).get("idemp_state") == ASSIGNED:
                return

    def _next(self, poll: Callable[[float], object]) -> dict[str, Any]:
        """A report from now on, which has everything that was done; empty when none comes."""
        self._report = None
        deadline_s = time.monotonic() + REPORT_DEADLINE_S
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
