"""All flows of one mm2.properties in one process: a worker of Connect for each, with the three connectors in its threads."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from penstock.client.errors import BadOption, Refused, Unreachable, UserError
from penstock.client.group_identity import Identity
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.running.options import WorkerOptions, worker_options
from penstock.connect.running.refusals import Refusal
from penstock.connect.running.worker import Worker
from penstock.connect.tasks.settings import WorkerSettings
from penstock.mirror.clusters import connection_of, make_internal_topic
from penstock.mirror.flows import HEARTBEAT, Flow
from penstock.mirror.progress import Progress, Reached

log = logging.getLogger("penstock.mirror")

LEAD_S: Final = 30.0
AGAIN_S: Final = 2.0
LOOK_S: Final = 0.02
RUNNING: Final = "RUNNING"


class FlowState:
    """What is to be shown of a flow."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.reached: Reached = Progress.of(flow.source, flow.target).now()
        self.megabytes_per_s = 0.0
        self.troubles: list[str] = []
        self._at_s = time.monotonic()

    def look(self, worker: Worker) -> None:
        now, now_s = Progress.of(self.flow.source, self.flow.target).now(), time.monotonic()
        seconds = max(now_s - self._at_s, 0.001)
        self.megabytes_per_s = (now.size_bytes - self.reached.size_bytes) / seconds / 1e6
        self.reached, self._at_s = now, now_s
        self.troubles = list(_troubles(worker))

    def line(self) -> str:
        one = self.reached
        trouble = f" · {'; '.join(self.troubles)}" if self.troubles else ""
        return (
            f"{self.flow}: {one.topics} topics, {one.partitions} partitions, {one.records:,} records copied, "
            f"{self.megabytes_per_s:.1f} MB/s, lag {one.lag:,}{trouble}"
        )


class Mirror:
    """`start` returns when the connectors are taken; `stop` when all is kept. Whatever fails in between is tried again."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        """BadOption."""
        self.flows = list(flows)
        self._workers: list[tuple[Flow, Worker]] = []
        self._states = {str(flow): FlowState(flow) for flow in flows}
        self._options = {str(flow): _options(flow) for flow in flows}

    def start(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """UserError for a configuration that is refused. A cluster that is away is waited for."""
        waiting = list(self.flows)
        while waiting and not is_stopping():
            for flow in list(waiting):
                try:
                    self._workers.append((flow, self._started(flow)))
                    waiting.remove(flow)
                except (Unreachable, Refused, ConnectError) as error:
                    log.warning("%s waits: %s", flow, error)
            if waiting:
                time.sleep(AGAIN_S)

    def stop(self) -> None:
        for _, worker in self._workers:
            worker.close()
        self._workers.clear()

    def states(self) -> list[FlowState]:
        """Of the flows that copy."""
        for flow, worker in self._workers:
            self._states[str(flow)].look(worker)
        return [self._states[str(flow)] for flow in self.flows if flow.is_enabled]

    def _started(self, flow: Flow) -> Worker:
        options = self._options[str(flow)]
        settings = options.worker
        make_internal_topic(
            connection_of(flow.connectors[HEARTBEAT], "target"),
            settings.offsets_topic or "",
            partitions=settings.offsets_partitions,
            replication_factor=settings.offsets_replication,
        )
        worker = Worker(options, Identity("http", "127.0.0.1", 0))
        try:
            worker.open()
            worker.begin()
            deadline_s = time.monotonic() + LEAD_S
            while not worker.leading.leads and time.monotonic() < deadline_s:
                time.sleep(LOOK_S)
            for name, config in flow.connectors.items():
                worker.herder.put(name, config)
        except Refusal as error:
            with suppress(Exception):
                worker.close()
            raise UserError(f"{flow}: {error}") from None
        except BaseException:
            with suppress(Exception):
                worker.close()
            raise
        return worker


def _options(flow: Flow) -> WorkerOptions:
    """Those of a standalone worker, but for its offsets: they are in a topic of the target."""
    given = dict(flow.worker)
    options = worker_options({**given, "offset.storage.file.filename": "none"}, is_standalone=True)
    try:
        return replace(options, worker=WorkerSettings.of(given))
    except InvalidConfig as error:
        raise BadOption(str(error)) from None


def _troubles(worker: Worker) -> list[str]:
    found = []
    book = worker.book
    with book.lock:
        for name in sorted(book.configs.connectors):
            states: Mapping[str, object] = {name: book.statuses.connectors.get(name)}
            states = {
                **states,
                **{f"{name}-{task}": one for task, one in book.statuses.tasks_of(name).items()},
            }
            for who, status in states.items():
                state, trace = getattr(status, "state", RUNNING), getattr(status, "trace", None)
                if state == "FAILED":
                    found.append(f"{who} has failed: {_last_line(trace)}")
    return found


def _last_line(trace: str | None) -> str:
    lines = [line for line in (trace or "").splitlines() if line.strip()]
    return lines[-1].partition(": ")[2] or lines[-1] if lines else "nobody has said why"
