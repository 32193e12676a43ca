"""Where tasks run: threads of a standalone worker; processes of this machine; or Spark, whose session takes seconds to start:
on this machine those who may have to lead have one ready."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.connect.errors import ConnectError
from penstock.connect.running.options import LOCAL, MASTER, NO_MASTER, WorkerOptions
from penstock.spark.tasks import ProcessLauncher, SparkLauncher, ThreadLauncher
from penstock.spark.tasks.job import Launcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock.connect")

SESSION_TIMEOUT_S: Final = 120.0


class Launchers(Protocol):
    def prepare(self) -> None:
        """What takes long is begun."""

    def stand_by(self) -> None:
        """This worker may have to lead at any moment."""

    def get(self) -> Launcher:
        """ConnectError."""

    def close(self) -> None: ...


class Ready:
    """`Launchers` that need nothing."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def prepare(self) -> None:
        pass

    def stand_by(self) -> None:
        pass

    def get(self) -> Launcher:
        return self._launcher

    def close(self) -> None:
        pass


# The JVM starts and watches tasks, whose work is done in Python: it needs no large heap, and no code compiled for speed.
SMALL_JVM: Final = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k",
}


class OnSpark:
    """A session that is started when this worker begins to lead, or before: on a cluster it would hold executors for nothing."""

    def __init__(self, master: str) -> None:
        self._master = master
        self._is_local = not master or master.startswith(LOCAL)
        self._stands_by = False
        self._session: SparkSession | None = None
        self._launcher: SparkLauncher | None = None
        self._failure: Exception | None = None
        self._is_ready = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def prepare(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._open, name="penstock-spark", daemon=True)
                self._thread.start()

    def stand_by(self) -> None:
        if self._is_local:
            self._stands_by = True
            self.prepare()

    def get(self) -> Launcher:
        self.prepare()
        if not self._is_ready.wait(SESSION_TIMEOUT_S):
            raise ConnectError(f"Spark has not started within {SESSION_TIMEOUT_S:.0f} s")
        if self._launcher is None:
            raise ConnectError(f"Spark could not be started: {self._failure}")
        return self._launcher

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()

    def _open(self) -> None:
        from penstock.spark.session import session

        given: dict[str, Any] = {} if self._master in (LOCAL, "") else {"master": self._master}
        if self._is_local:
            given |= SMALL_JVM
        try:
            self._session = session("penstock-connect", long_tasks=True, **given)
            self._launcher = SparkLauncher(self._session)
            log.info("Spark is ready: %s", self._session.sparkContext.master)
        except Exception as error:
            log.exception("Spark could not be started")
            self._failure = error
        self._is_ready.set()
        if self._stands_by and self._session is not None:
            try:
                self._session.sparkContext.parallelize([0], 1).map(
                    _same
                ).count()  # what forks the tasks is started
            except Exception as error:
                log.info("Spark has not run a first task: %s", error)


def _same(given: int) -> int:
    return given


def launchers_of(options: WorkerOptions) -> Launchers:
    if options.is_standalone:
        return Ready(ThreadLauncher())
    if options[MASTER] == NO_MASTER:
        return Ready(ProcessLauncher())
    return OnSpark(options[MASTER])
