"""The numbers of a worker for Prometheus, under the names that Kafka Connect's have behind the usual JMX exporters.

The leader tells what tasks count, since they report to it; how connectors and tasks are is told by every worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from penstock.connect.running.worker import Worker
from penstock.connect.state import statuses
from penstock.connect.state.statuses import Status

_CONNECTOR: Final = ["connector"]
_TASK: Final = ["connector", "task"]
_STATES: Final = (
    statuses.RUNNING, statuses.PAUSED, statuses.FAILED, statuses.UNASSIGNED, statuses.RESTARTING,
)  # fmt: skip
_FAMILIES: Final = (
    (("source-record-", "poll-batch-"), "source_task"),
    (("sink-record-", "put-batch-", "partition-count"), "sink_task"),
    (("total-", "deadletterqueue-", "last-error-"), "task_error"),
)
"""Which numbers of a task are in which group of Kafka's; the others are `connector_task`."""


class WorkerNumbers:
    """A collector, asked at every scrape."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Any]:
        book = self._worker.book
        with book.lock:
            connectors = dict(book.statuses.connectors)
            tasks = {name: dict(known) for name, known in book.statuses.tasks.items() if known}
        yield _gauge("penstock_connect_leader", "1 where this worker leads.", int(self._worker.leading.leads))
        yield _gauge("kafka_connect_worker_connector_count", "Connectors.", len(connectors))
        yield _gauge("kafka_connect_worker_task_count", "Tasks.", sum(map(len, tasks.values())))
        leads = self._worker.leading.leads
        assigned = "that this worker runs: all of them where it leads."
        yield _gauge(
            "kafka_connect_coordinator_assigned_connectors", f"Connectors {assigned}", len(connectors) * leads
        )
        yield _gauge(
            "kafka_connect_coordinator_assigned_tasks",
            f"Tasks {assigned}",
            sum(map(len, tasks.values())) * leads,
        )
        yield from _states(connectors, tasks)
        yield from _counters(self._worker.crew.counters())


def _gauge(name: str, help_text: str, number: float) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, help_text)
    family.add_metric([], number)
    return family


def _states(connectors: Mapping[str, Status], tasks: Mapping[str, Mapping[int, Status]]) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    of_connectors = GaugeMetricFamily(
        "kafka_connect_connector_status", "1 for the state of a connector.", labels=[*_CONNECTOR, "status"]
    )
    for name, status in connectors.items():
        of_connectors.add_metric([name, status.state.lower()], 1)
    yield of_connectors
    of_tasks = GaugeMetricFamily(
        "kafka_connect_connector_task_status", "1 for the state of a task.", labels=[*_TASK, "status"]
    )
    for name, known in tasks.items():
        for task, status in known.items():
            of_tasks.add_metric([name, str(task), status.state.lower()], 1)
    yield of_tasks
    for state in (*_STATES, None):
        word = "total" if state is None else state.lower()
        family = GaugeMetricFamily(
            f"kafka_connect_worker_connector_{word}_task_count",
            "Tasks of a connector." if state is None else f"Tasks of a connector that are {state}.",
            labels=_CONNECTOR,
        )
        for name, known in tasks.items():
            counted = Counter(status.state for status in known.values())
            family.add_metric([name], len(known) if state is None else counted[state])
        yield family


def _counters(counters: Mapping[tuple[str, int], Mapping[str, Any]]) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    families: dict[str, Any] = {}
    for (connector, task), counted in counters.items():
        for name, number in counted.items():
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            if name not in families:
                make = CounterMetricFamily if name.endswith("-total") else GaugeMetricFamily
                told = f"{name} of a task, as Kafka Connect counts it."
                families[name] = make(_name_of(name), told, labels=_TASK)
            families[name].add_metric([connector, str(task)], number)
    yield from families.values()


def _name_of(counter: str) -> str:
    family = next((family for starts, family in _FAMILIES if counter.startswith(starts)), "connector_task")
    return f"kafka_connect_{family}_{counter.replace('-', '_').replace('.', '_')}"
