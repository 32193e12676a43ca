"""Where the tasks of a job run: on Spark; without it, in processes of this machine or in threads of this process.

A launcher's `run` lasts as long as its tasks. All three start a task that dies again, `attempts` times at most.
"""

from __future__ import annotations

import ctypes
import logging
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.spark.tasks.control import LOOPBACK
from penstock.spark.tasks.failures import NoRoom
from penstock.spark.tasks.program import Program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock.spark.tasks")


ATTEMPTS: Final = 4  # a cluster's
POLL_S: Final = 0.05
EXECUTORS_S: Final = 30.0  # as long as a cluster's executors may take to come
LEFT_BEHIND_S: Final = 5.0
WELL_AFTER_S: Final = 60.0
KILLED: Final = "the process of task {task} ended with {code}"


class SparkLauncher:
    """Each job is one Spark job with a job group of its own. Tasks hold a slot as long as they run, so a local master needs more
    slots than cores: `penstock.spark.session(long_tasks=True)`."""

    def __init__(self, spark: SparkSession) -> None:
        from penstock.spark.internals.sessions import is_remote_session

        if is_remote_session(spark):
            raise NoRoom("long tasks need a session of their own; Spark Connect starts none")
        self._spark = spark
        context = spark.sparkContext
        is_local = str(context.master).startswith("local")
        self.host = LOOPBACK if is_local else str(context.getConf().get("spark.driver.host", LOOPBACK))
        limit = context.getConf().get("spark.task.maxFailures", str(ATTEMPTS))
        self.attempts = int(limit or ATTEMPTS)
        self._room = _room_of(spark)

    def check(self, tasks: int) -> None:
        self._room.check(tasks)

    def thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        """One that Spark knows: a job group belongs to a thread."""
        from pyspark import InheritableThread

        return InheritableThread(target=target, name=name, daemon=True)

    def run(self, program: Program, name: str, attempts_before: int) -> None:
        context = self._spark.sparkContext
        tasks = program.tasks
        with self._room.taken(tasks):
            context.setJobGroup(name, f"long tasks of {name}", interruptOnCancel=True)
            context.parallelize(range(tasks), tasks).mapPartitionsWithIndex(
                _in_spark(program, attempts_before)
            ).collect()

    def cancel(self, name: str) -> None:
        self._spark.sparkContext.cancelJobGroup(name)

    def is_over(self) -> bool:
        from penstock.spark.internals.sessions import is_stopped

        return is_stopped(self._spark)


def _in_spark(program: Program, attempts_before: int) -> Callable[[int, Iterable[int]], Iterator[int]]:
    def run(index: int, _: Iterable[int]) -> Iterator[int]:
        from pyspark import TaskContext

        task = TaskContext.get()
        attempt = task.attemptNumber() if task is not None else 0
        program.run(index, attempt=attempts_before + attempt, owns_process=True)
        return iter(())

    return run


class _Room:
    """The slots of a session: a job that does not find as many as it has tasks would wait without a word."""

    def __init__(self, count: Callable[[], int], master: str) -> None:
        """`count` gives the slots there are now: a cluster's executors come some time after the session."""
        self._count, self._master = count, master
        self._slots = count()
        self._taken = 0
        self._lock = threading.Lock()

    def check(self, tasks: int) -> None:
        self._wait_for(self._taken + tasks)
        if self._taken + tasks > self._slots:
            raise NoRoom(
                f"{tasks} long tasks need as many slots, and {self._master} has {self._slots}, of which other long tasks "
                f"have {self._taken}: penstock.spark.session(long_tasks=True), or a master with more of them"
            )

    def _wait_for(self, slots: int) -> None:
        deadline_s = time.monotonic() + (0 if self._master.startswith("local") else EXECUTORS_S)
        while self._slots < slots:
            self._slots = max(self._slots, self._count())
            if time.monotonic() >= deadline_s:
                return
            time.sleep(POLL_S)

    def taken(self, tasks: int) -> _Taken:
        with self._lock:
            self.check(tasks)
            self._taken += tasks
        return _Taken(self, tasks)

    def give_back(self, tasks: int) -> None:
        with self._lock:
            self._taken -= tasks


class _Taken:
    def __init__(self, room: _Room, tasks: int) -> None:
        self._room, self._tasks = room, tasks

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._room.give_back(self._tasks)


_rooms: dict[str, _Room] = {}  # by application
_rooms_lock = threading.Lock()


def _room_of(spark: SparkSession) -> _Room:
    from penstock.spark.internals.jvm import slots

    application = str(spark.sparkContext.applicationId)
    with _rooms_lock:
        if application not in _rooms:
            _rooms[application] = _Room(partial(slots, spark), str(spark.sparkContext.master))
        return _rooms[application]


class ProcessLauncher:
    """Without Spark: a process of this machine for each task. What a test of a program's worker needs, and can kill."""

    host = LOOPBACK
    attempts = ATTEMPTS

    def check(self, tasks: int) -> None:
        pass

    def __init__(self, python: str = sys.executable, *, well_after_s: float = WELL_AFTER_S) -> None:
        """A process that ran for `well_after_s` before it died counts as the first that did."""
        self._python = python
        self._well_after_s = well_after_s
        self._processes: dict[str, dict[int, subprocess.Popen[bytes]]] = {}
        self._numbers: dict[str, dict[int, int]] = {}
        """The number of each task's next attempt, by job: over all runs, as a driver refuses lower ones than it has seen."""

    def run(self, program: Program, name: str, attempts_before: int) -> None:
        from penstock.spark.internals.pickling import pickled

        sent = pickle.dumps(sys.path) + pickled(program)
        running = self._processes[name] = {}
        numbers = self._numbers.setdefault(name, {})
        tried = dict.fromkeys(range(program.tasks), 0)
        began_s: dict[int, float] = {}
        try:
            waiting = set(tried)
            while waiting:
                for task in sorted(waiting):
                    process = running.get(task)
                    if process is None:
                        number = max(attempts_before, numbers.get(task, 0))
                        running[task], began_s[task] = self._start(sent, task, number), time.monotonic()
                        numbers[task] = number + 1
                        tried[task] += 1
                    elif (code := process.poll()) is not None:
                        if time.monotonic() - began_s[task] >= self._well_after_s:
                            tried[task] = 1
                        if code == 0:
                            waiting.discard(task)
                        elif tried[task] >= self.attempts or name not in self._processes:
                            raise ChildProcessError(KILLED.format(task=task, code=code))
                        else:
                            log.info(KILLED.format(task=task, code=code))
                            del running[task]
                time.sleep(POLL_S)
            self._numbers.pop(name, None)
        finally:
            self._end(running.values())
            self._processes.pop(name, None)

    def cancel(self, name: str) -> None:
        self._numbers.pop(name, None)
        self._end(self._processes.pop(name, {}).values())

    def is_over(self) -> bool:
        return False

    def process_ids(self) -> dict[str, dict[int, int]]:
        """By job and task."""
        return {
            name: {task: each.pid for task, each in processes.items()}
            for name, processes in self._processes.items()
        }

    def _start(self, sent: bytes, task: int, attempt: int) -> subprocess.Popen[bytes]:
        command = [self._python, "-m", "penstock.spark.tasks.process", str(task), str(attempt)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        assert process.stdin is not None
        try:
            process.stdin.write(sent)
            process.stdin.close()
        except OSError:
            pass  # it has died, which its code tells
        return process

    def _end(self, processes: Iterable[subprocess.Popen[bytes]]) -> None:
        for each in processes:
            if each.poll() is None:
                each.kill()
            each.wait()


class Cancelled(BaseException):
    """Raised in a thread that is to end at once."""


class ThreadLauncher:
    """Without Spark: threads of this process, for a small program or a quick test. One that is cancelled ends where it next runs
    Python code; what hangs outside of Python is left behind."""

    host = LOOPBACK
    attempts = 1

    def __init__(self) -> None:
        self._threads: dict[str, list[threading.Thread]] = {}
        self._cancelled: set[str] = set()

    def check(self, tasks: int) -> None:
        pass

    def run(self, program: Program, name: str, attempts_before: int) -> None:
        failed: list[BaseException] = []

        def call(task: int) -> None:
            try:
                program.run(task, attempt=attempts_before, owns_process=False)
            except BaseException as error:
                failed.append(error)

        threads = [
            threading.Thread(target=call, args=(task,), name=f"{name}-{task}", daemon=True)
            for task in range(program.tasks)
        ]
        self._threads[name] = threads
        for thread in threads:
            thread.start()
        try:
            self._wait_for(threads, name)
        finally:
            del self._threads[name]
        if failed:
            raise ChildProcessError(f"{type(failed[0]).__name__}: {failed[0]}") from failed[0]

    def cancel(self, name: str) -> None:
        self._cancelled.add(name)
        for thread in self._threads.get(name, ()):
            if thread.is_alive():
                _raise_in(thread, Cancelled)

    def is_over(self) -> bool:
        return False

    def _wait_for(self, threads: list[threading.Thread], name: str) -> None:
        deadline_s: float | None = None
        while alive := [thread for thread in threads if thread.is_alive()]:
            alive[0].join(POLL_S)
            if name not in self._cancelled:
                continue
            deadline_s = deadline_s or time.monotonic() + LEFT_BEHIND_S
            if time.monotonic() > deadline_s:
                raise ChildProcessError(
                    f"{len(alive)} threads of {name} could not be ended, and are left behind"
                )


def _raise_in(thread: threading.Thread, kind: type[BaseException]) -> None:
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(kind))
