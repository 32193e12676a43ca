"""Where the tasks of a job run: on Spark; without it, in processes of this machine or in threads of this process.

A launcher's `run` lasts as long as its tasks. All three start a task that dies again, `attempts` times at most.
"""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from penstock.spark.tasks.control import LOOPBACK
from penstock.spark.tasks.failures import NoRoom
from penstock.spark.tasks.program import Program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock.spark.tasks")


ATTEMPTS: Final = 4  # a cluster's
POLL_S: Final = 0.05
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

    def __init__(self, slots: int, master: str) -> None:
        self._slots, self._master = slots, master
        self._taken = 0
        self._lock = threading.Lock()

    def check(self, tasks: int) -> None:
        if self._taken + tasks > self._slots:
            raise NoRoom(
                f"{tasks} long tasks need as many slots, and {self._master} has {self._slots}, of which other long tasks "
                f"have {self._taken}: penstock.spark.session(long_tasks=True), or a master with more of them"
            )

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
            _rooms[application] = _Room(slots(spark), str(spark.sparkContext.master))
        return _rooms[application]


class ProcessLauncher:
    """Without Spark: a process of this machine for each task. What a test of a program's worker needs, and can kill."""

    host = LOOPBACK
    attempts = ATTEMPTS

    def check(self, tasks: int) -> None:
        pass

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._processes: dict[str, dict[int, subprocess.Popen[bytes]]] = {}

    def run(self, program: Program, name: str, attempts_before: int) -> None:
        from penstock.spark.internals.pickling import pickled

        sent = pickle.dumps(sys.path) + pickled(program)
        running = self._processes[name] = {}
        tried = dict.fromkeys(range(program.tasks), 0)
        try:
            waiting = set(tried)
            while waiting:
                for task in sorted(waiting):
                    process = running.get(task)
                    if process is None:
                        running[task] = self._start(sent, task, attempts_before + tried[task])
                        tried[task] += 1
                    elif (code := process.poll()) is not None:
                        if code == 0:
                            waiting.discard(task)
                        elif tried[task] >= self.attempts or name not in self._processes:
                            raise ChildProcessError(KILLED.format(task=task, code=code))
                        else:
                            log.info(KILLED.format(task=task, code=code))
                            del running[task]
                time.sleep(POLL_S)
        finally:
            self._end(running.values())
            self._processes.pop(name, None)

    def cancel(self, name: str) -> None:
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


class ThreadLauncher:
    """Without Spark: threads of this process, for a small program or a quick test. A thread cannot be cancelled."""

    host = LOOPBACK
    attempts = 1

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
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise ChildProcessError(f"{type(failed[0]).__name__}: {failed[0]}") from failed[0]

    def cancel(self, name: str) -> None:
        pass

    def is_over(self) -> bool:
        return False
