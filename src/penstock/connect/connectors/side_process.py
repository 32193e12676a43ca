"""A program of ours in a process of its own, beside the task that uses it: for what wants a Java machine.

A Java machine cannot be started twice in a process, cannot be asked to go, and takes its process along when it falls. A task may
also run in a Python worker of Spark, where no Spark session may be. So such a part of a connector is a process: its input and
output carry pickled messages, its errors and prints go where the task's go. It ends when its task's process ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from penstock.connect.errors import ConnectError

QUEUE_MAX: Final = 8
SLICE_S: Final = 0.2
END_S: Final = 10.0
_LENGTH_BYTES: Final = 8
_OF_SPARK: Final = ("PYSPARK_GATEWAY", "PYTHON_WORKER", "PYSPARK_SUBMIT_ARGS", "SPARK_AUTH_SOCKET")
"""Variables of a Python worker that would make another process believe it is one."""


class Ended(ConnectError):
    """The process is not there any more."""


class SideProcess:
    """`module` is run with `python -m`; its `main` uses a `Channel`. Use from one thread."""

    def __init__(self, module: str) -> None:
        given = {name: value for name, value in os.environ.items() if not name.startswith(_OF_SPARK)}
        given["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self._module = module
        # In a session of its own Ctrl-C does not come to it: the task decides.
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=given, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self._received: queue.Queue[Any] = queue.Queue(QUEUE_MAX)
        threading.Thread(
            target=_receive, args=(self._process.stdout, self._received.put, lambda: self._received.put(_END)), daemon=True
        ).start()  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, *message: Any) -> None:
        """Ended."""
        try:
            _write(self._input, message)
        except OSError:
            raise Ended(self._how_it_ended()) from None

    def receive(self, timeout_s: float) -> Any:
        """None when nothing comes within the time. Ended."""
        try:
            found = self._received.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if found is _END:
            self._received.put(_END)
            raise Ended(self._how_it_ended())
        return found

    def wait(self, is_over: Callable[[], bool], timeout_s: float) -> Any:
        """The next message; None when `is_over` says so first. Ended; ConnectError after the time."""
        slices = max(1, round(timeout_s / SLICE_S))
        for _ in range(slices):
            found = self.receive(SLICE_S)
            if found is not None or is_over():
                return found
        raise ConnectError(f"{self._module} does not answer within {timeout_s:.0f} s")

    def close(self) -> None:
        """Asks it to end, and ends it."""
        # It may wait for room for what nobody takes any more.
        threading.Thread(target=self._drain, daemon=True).start()
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_S)

    def _drain(self) -> None:
        while self._received.get() is not _END:
            pass

    def _how_it_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        return f"{self._module} has ended with {self._process.returncode}: what it has said is in the worker's log"


class Channel:
    """In the process itself. What else is printed there goes to its errors."""

    def __init__(self, at_end: Callable[[], None] = lambda: None) -> None:
        """`at_end` is called, from another thread, when the task closes its side; a second or so later the process is gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._output = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._received: queue.Queue[Any] = queue.Queue()
        self._lock = threading.Lock()
        self._at_end = at_end
        source = os.fdopen(os.dup(0), "rb")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        threading.Thread(target=_receive, args=(source, self._received.put, self._end), daemon=True).start()

    def send(self, *message: Any) -> None:
        with self._lock:
            _write(self._output, message)

    def receive(self) -> Any:
        return self._received.get()

    def wake(self, *message: Any) -> None:
        """`receive` returns it: what another thread of this process has to say."""
        self._received.put(message)

    def _end(self) -> None:
        try:
            self._at_end()
        finally:
            os._exit(0)


_END: Final = object()


def _write(output: Any, message: Any) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    output.write(len(data).to_bytes(_LENGTH_BYTES, "big"))
    output.write(data)
    output.flush()


def _receive(source: BinaryIO, take: Callable[[Any], None], end: Callable[[], None]) -> None:
    try:
        while len(size := source.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
            count = int.from_bytes(size, "big")
            data = source.read(count)
            if len(data) < count:
                break
            take(pickle.loads(data))
    except (OSError, ValueError):
        pass  # closed meanwhile
    finally:
        with contextlib.suppress(OSError):
            source.close()
    end()
