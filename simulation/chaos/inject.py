"""Faults done to real processes, and undone."""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from penstock.testing.clusters import Cluster
from penstock.testing.processes import ProcessFailed
from penstock.testing.zookeeper import ZooKeeperEnsemble
from simulation.chaos.plan import Fault, FaultKind, Step

ZOOKEEPER_TIMEOUT_S = 60.0


class Injector:
    """One step at a time. `note` is told what happens, for the log."""

    def __init__(self, cluster: Cluster, zookeeper: ZooKeeperEnsemble, note: Callable[[str], None]) -> None:
        self._cluster, self._zookeeper, self._note = cluster, zookeeper, note
        self.counts: Counter[FaultKind] = Counter()
        self.pauses: Counter[int] = Counter()
        """By broker: how often it was paused or resumed; odd while it is paused."""

    def run(self, step: Step) -> None:
        """Every fault of the step, each for its time; all are undone when it returns."""
        self.counts.update(fault.kind for fault in step.faults)
        with ThreadPoolExecutor(len(step.faults)) as at_once:
            for done in [at_once.submit(self._suffer, fault) for fault in step.faults]:
                done.result()

    def _suffer(self, fault: Fault) -> None:
        until = time.monotonic() + fault.lasts_s
        undo = self._begin(fault)
        time.sleep(max(0.0, until - time.monotonic()))
        undo()

    def _begin(self, fault: Fault) -> Callable[[], None]:
        """Returns what undoes it."""
        if fault.broker_id is None:
            return self._begin_zookeeper(fault)
        broker_id, cluster = fault.broker_id, self._cluster
        self._note(f"broker {broker_id}: {fault.kind}, {fault.lasts_s:.1f} s")
        self._check_running(broker_id)
        if fault.kind is FaultKind.KILL:
            cluster.kill(broker_id)
        elif fault.kind is FaultKind.RESTART:
            cluster.stop(broker_id)
        else:
            self.pauses[broker_id] += 1
            cluster.pause(broker_id)
            return lambda: self._undo(f"broker {broker_id} goes on", lambda: self._resume(broker_id))
        return lambda: self._undo(f"broker {broker_id} starts", lambda: cluster.start(broker_id))

    def _resume(self, broker_id: int) -> None:
        self._cluster.resume(broker_id)
        self.pauses[broker_id] += 1

    def _begin_zookeeper(self, fault: Fault) -> Callable[[], None]:
        server = self._zookeeper.leader(timeout_s=ZOOKEEPER_TIMEOUT_S)
        name = f"ZooKeeper {server.server_id}"
        self._note(f"{name}: {fault.kind}, {fault.lasts_s:.1f} s")
        if fault.kind is FaultKind.ZOOKEEPER_KILL:
            server.kill()
            return lambda: self._undo(f"{name} starts", server.start)
        server.pause()
        return lambda: self._undo(f"{name} goes on", server.resume)

    def _undo(self, text: str, undo: Callable[[], None]) -> None:
        self._note(text)
        undo()
        self._note(f"{text}: done")

    def _check_running(self, broker_id: int) -> None:
        process = self._cluster.process(broker_id)
        if not process.is_running:
            raise ProcessFailed(f"broker {broker_id} ended by itself with exit code {process.exit_code}")
