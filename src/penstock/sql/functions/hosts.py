"""Processes that run programs (`child`), kept for the next call.

A call that does not end in time costs its process, and the next call starts another: so a row waits at most for the time limit,
and nothing is left that goes on in the background. Who calls at one time has processes at one time.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

from penstock.streams.functions.refusals import FunctionFailed

CHILD: Final = str(Path(__file__).with_name("child.py"))
START_TIMEOUT_S: Final = 30.0
MAX_IDLE: Final = 16
"""Processes that are kept while nobody calls."""
MAX_ANSWER_BYTES: Final = 64 << 20
_LENGTH: Final = struct.Struct(">I")
_KEPT_OF_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR")


class CannotLoad(FunctionFailed):
    pass


class DidNotEnd(Exception):
    pass


class HasEnded(Exception):
    pass


class _Plain(pickle.Unpickler):
    """Values and nothing else: what comes is a program's."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("decimal", "Decimal"):
            return super().find_class(module, name)
        raise FunctionFailed(f"it gives an object of {module}.{name}, which is no value of SQL")


class Host:
    def __init__(self, about: tuple[Any, ...]) -> None:
        """FunctionFailed where the program cannot be loaded."""
        environment = {name: os.environ[name] for name in _KEPT_OF_ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-I", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._of = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._ready = select.poll()
        self._ready.register(self._of, select.POLLIN)
        try:
            self._asked(about, START_TIMEOUT_S)
        except BaseException:
            self.kill()
            raise

    def call(self, function: str, arguments: tuple[Any, ...], timeout_s: float) -> Any:
        """FunctionFailed; DidNotEnd and HasEnded, then it is of no more use."""
        return self._asked((function, arguments), timeout_s)

    def kill(self) -> None:
        """With what the program has started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for each in (self._process.stdin, self._process.stdout):
            try:
                if each is not None:
                    each.close()
            except OSError:
                pass
        self._process.wait()

    def _asked(self, request: tuple[Any, ...], timeout_s: float) -> Any:
        deadline_s = time.monotonic() + timeout_s
        data = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
        left = memoryview(_LENGTH.pack(len(data)) + data)
        try:
            while left:
                left = left[os.write(self._to, left) :]
        except OSError:
            raise HasEnded from None
        size = _LENGTH.unpack(self._read(_LENGTH.size, deadline_s))[0]
        if size > MAX_ANSWER_BYTES:
            raise HasEnded
        answer = _Plain(io.BytesIO(self._read(size, deadline_s)))
        try:
            state, value = answer.load()
        except FunctionFailed:
            raise
        except Exception:
            raise HasEnded from None
        if state != "ok":
            raise FunctionFailed(str(value))
        return value

    def _read(self, size: int, deadline_s: float) -> bytes:
        found = b""
        while len(found) < size:
            left_ms = (deadline_s - time.monotonic()) * 1000
            if left_ms <= 0 or not self._ready.poll(left_ms):
                raise DidNotEnd
            chunk = os.read(self._of, size - len(found))
            if not chunk:
                raise HasEnded
            found += chunk
        return found


class Hosts:
    """`call` from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[tuple[Hashable, Host]] = deque()

    def call(
        self, name: str, about: tuple[Any, ...], function: str, arguments: tuple[Any, ...], timeout_ms: int
    ) -> Any:
        """FunctionFailed, with the function's name."""
        host = self._taken(about) or _started(name, about)
        try:
            value = host.call(function, arguments, timeout_ms / 1000)
        except FunctionFailed as failed:
            self._give_back(about, host)
            raise FunctionFailed(f"The function {name} has failed: {failed}") from None
        except DidNotEnd:
            host.kill()
            raise FunctionFailed(
                f"The function {name} was given up: it did not end within {timeout_ms} ms "
                "(penstock.sql.functions.timeout.ms)"
            ) from None
        except (HasEnded, OSError):
            host.kill()
            raise FunctionFailed(f"The function {name} has ended its process") from None
        self._give_back(about, host)
        return value

    def close(self) -> None:
        with self._lock:
            idle, self._idle = list(self._idle), deque()
        for _, host in idle:
            host.kill()

    def _taken(self, about: Hashable) -> Host | None:
        with self._lock:
            for at in range(len(self._idle) - 1, -1, -1):
                if self._idle[at][0] == about:
                    host = self._idle[at][1]
                    del self._idle[at]
                    return host
        return None

    def _give_back(self, about: Hashable, host: Host) -> None:
        with self._lock:
            self._idle.append((about, host))
            oldest = self._idle.popleft()[1] if len(self._idle) > MAX_IDLE else None
        if oldest is not None:
            oldest.kill()


def _started(name: str, about: tuple[Any, ...]) -> Host:
    try:
        return Host(about)
    except FunctionFailed as failed:
        reason = str(failed)
    except DidNotEnd:
        reason = f"it has not begun within {START_TIMEOUT_S:.0f} s"
    except HasEnded:
        reason = "it has ended its process"
    except OSError as error:
        reason = f"no process can be started: {error}"
    raise CannotLoad(f"The program of the function {name} cannot be loaded: {reason}")


HOSTS: Final = Hosts()
"""Of this process."""
atexit.register(HOSTS.close)
