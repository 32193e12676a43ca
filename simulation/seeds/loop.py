"""Time and order under a seed: event loops whose clock is a number, and the schedule that runs them.

Each simulated process has a loop of its own, so that it can be stopped, held back or killed as a whole. The schedule runs
one turn of one loop at a time. A loop's own callbacks keep the order that asyncio promises; which loop is next, which of
several ready sockets is first and how long a thread takes are the seed's choice, as they are the kernel's outside. When
no loop has anything to do, time jumps to the next timer.

Promised: the same seed and the same program give the same run; `Schedule.digest` is a checksum of every turn and every byte
that arrived, to see that they did. Not promised: that code under simulation which iterates over sets of objects, reads the real
clock or starts threads is the same twice.
"""

import heapq
import struct
from asyncio import AbstractEventLoop, CancelledError, Future, Handle, Task, TimerHandle, events
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any, Final, Protocol, TypeVar
from warnings import catch_warnings, simplefilter
from weakref import ref
from zlib import crc32

from penstock.runtime.locks import DeviceLock
from penstock.testing import loop_law

Result = TypeVar("Result")

MAX_TURNS_AT_ONE_MOMENT: Final = 200_000
"""So many turns without any time passing are a loop that never ends."""
THREAD_SECONDS: Final = 0.004
"""What is handed to a thread is done within this time, usually sooner."""
FIRST_MOMENT: Final = 1000.0
LONGEST_RUN_SECONDS: Final = 900.0
SWEEP_TASKS_AT: Final = 256

_turn = struct.Struct("<dI").pack


class Stuck(Exception):
    """The simulated program does not come to an end: nothing is left to wait for, or time stands still."""


class Descriptor(Protocol):
    """What a loop may wait for."""

    @property
    def is_readable(self) -> bool: ...
    @property
    def is_writable(self) -> bool: ...


class Schedule:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now = FIRST_MOMENT
        self.digest = 0
        self.turns = 0
        self.descriptors: dict[int, Descriptor] = {}
        self.mistakes: list[str] = []
        """Exceptions that nobody caught."""
        self._timers: list[tuple[float, float, int, TimerHandle]] = []
        self._timer_count = 0
        self._runnable: list[VirtualLoop] = []
        self._loops: list[VirtualLoop] = []

    def new_loop(self, name: str) -> "VirtualLoop":
        # Abstract are signals, servers, subprocesses: nothing that a simulated process may have.
        loop = VirtualLoop(self, name, len(self._loops) + 1)  # type: ignore[abstract]
        self._loops.append(loop)
        return loop

    def close(self) -> None:
        """End every process: nothing is left for the collector to end at a moment of its own."""
        for loop in self._loops:
            loop.kill()

    def note(self, data: bytes | memoryview) -> None:
        """Make something that happened part of the digest."""
        self.digest = crc32(data, self.digest)

    def run(self, main: Coroutine[Any, Any, Result], loop: "VirtualLoop") -> Result:
        """Everything until `main`, which runs on that loop, is done."""
        if events._get_running_loop() is not None:
            raise RuntimeError("a simulation runs outside of any event loop")
        loop_law.broken.clear()
        DeviceLock.watch = loop_law.waits
        task = loop.create_task(main)
        try:
            while not task.done():
                self._step()
        finally:
            events._set_running_loop(None)
            DeviceLock.watch = None
            self.mistakes += loop_law.broken
        return task.result()

    def _step(self) -> None:
        runnable = self._runnable
        if not runnable:
            self._pass_time()
            return
        count = len(runnable)
        index = self.random.randrange(count) if count > 1 else 0
        loop = runnable[index]
        runnable[index] = runnable[-1]
        runnable.pop()
        loop.is_queued = False
        self.turns += 1
        if self.turns > MAX_TURNS_AT_ONE_MOMENT:
            raise Stuck(f"{MAX_TURNS_AT_ONE_MOMENT} turns at {self.now:.6f}, the last one of {loop.name}")
        self.digest = crc32(_turn(self.now, loop.number), self.digest)
        events._set_running_loop(loop)
        loop.run_turn()
        if loop.has_work:
            self.queue(loop)

    def _pass_time(self) -> None:
        timers = self._timers
        while timers and timers[0][3]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise Stuck("everybody waits, and nothing will ever happen")
        self.now = max(self.now, timers[0][0])
        if self.now > FIRST_MOMENT + LONGEST_RUN_SECONDS:
            raise Stuck(f"not at an end after {LONGEST_RUN_SECONDS:.0f} s")
        self.turns = 0
        while timers and timers[0][0] <= self.now:
            handle = heapq.heappop(timers)[3]
            handle._scheduled = False  # type: ignore[attr-defined]
            if not handle._cancelled:
                loop: VirtualLoop = handle._loop  # type: ignore[attr-defined]
                loop.add_ready(handle)

    def queue(self, loop: "VirtualLoop") -> None:
        if not loop.is_queued and not loop.is_paused and not loop.is_dead:
            loop.is_queued = True
            self._runnable.append(loop)

    def unqueue(self, loop: "VirtualLoop") -> None:
        if loop.is_queued:
            loop.is_queued = False
            self._runnable.remove(loop)

    def add_timer(self, handle: TimerHandle) -> None:
        self._timer_count += 1
        handle._scheduled = True  # type: ignore[attr-defined]
        entry = (handle.when(), self.random.random(), self._timer_count, handle)
        heapq.heappush(self._timers, entry)


class VirtualLoop(AbstractEventLoop):
    """The event loop of one simulated process."""

    def __init__(self, schedule: Schedule, name: str, number: int) -> None:
        self.schedule = schedule
        self.name = name
        self.number = number
        self.is_queued = False
        self.is_paused = False
        self.is_dead = False
        self.is_in_thread = False
        """Whether what runs now would run in a thread outside of a simulation, and so may wait."""
        self._ready: deque[Handle] = deque()
        self._readers: dict[int, Handle] = {}
        self._writers: dict[int, Handle] = {}
        self._polled: dict[int, None] = {}
        self._tasks: list[ref[Task[Any]]] = []
        self._next_sweep = SWEEP_TASKS_AT

    # --- for the schedule and the network

    @property
    def has_work(self) -> bool:
        return bool(self._ready or self._polled)

    def add_ready(self, handle: Handle) -> None:
        if not self.is_dead:
            self._ready.append(handle)
            self.schedule.queue(self)

    def poll(self, fd: int) -> None:
        """A descriptor may have become readable or writable."""
        if not self.is_dead and (fd in self._readers or fd in self._writers):
            self._polled[fd] = None
            self.schedule.queue(self)

    def run_turn(self) -> None:
        ready = self._ready
        if self._polled:
            self._select()
        for _ in range(len(ready)):
            if not ready:  # killed
                return
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _select(self) -> None:
        fds = list(self._polled)
        if len(fds) > 1:
            self.schedule.random.shuffle(fds)
        descriptors = self.schedule.descriptors
        for fd in fds:
            descriptor = descriptors.get(fd)
            reader, writer = self._readers.get(fd), self._writers.get(fd)
            is_ready = False
            if descriptor is not None and reader is not None and descriptor.is_readable:
                self._ready.append(reader)
                is_ready = True
            if descriptor is not None and writer is not None and descriptor.is_writable:
                self._ready.append(writer)
                is_ready = True
            if not is_ready:
                del self._polled[fd]

    def pause(self) -> None:
        """As SIGSTOP: nothing runs, while time and the network go on."""
        self.is_paused = True
        self.schedule.unqueue(self)

    def resume(self) -> None:
        self.is_paused = False
        if self.has_work:
            self.schedule.queue(self)

    def kill(self) -> None:
        """Nothing of this loop ever runs again; what it would clean up has no effect any more."""
        if self.is_dead:
            return
        self.is_dead = True
        self.schedule.unqueue(self)
        self._readers.clear()
        self._writers.clear()
        self._polled.clear()
        running = events._get_running_loop()
        events._set_running_loop(self)
        with catch_warnings():
            simplefilter("ignore", RuntimeWarning)  # of coroutines that a closed one had not begun to await
            for reference in self._tasks:
                task = reference()
                if task is not None and not task.done():
                    _end(task)
        self._ready.clear()  # not before: what has not begun would be collected, with a warning
        self._tasks.clear()
        events._set_running_loop(running)

    # --- what asyncio asks of a loop

    def time(self) -> float:
        return self.schedule.now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        return self.is_dead

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> Handle:  # type: ignore[override]
        handle = Handle(callback, args, self, context)
        if not self.is_dead:
            self._ready.append(handle)
            self.schedule.queue(self)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        return self.call_at(self.schedule.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        handle = TimerHandle(when, callback, args, self, context)
        if not self.is_dead:
            self.schedule.add_timer(handle)
        return handle

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        pass  # the schedule leaves it out when its time comes

    def create_future(self) -> Future[Any]:
        return Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Result], *, name: str | None = None, context: Context | None = None
    ) -> Task[Result]:
        task = Task(coro, loop=self, name=name, context=context)
        self._tasks.append(ref(task))
        if self.is_dead:
            _end(task)
        elif len(self._tasks) > self._next_sweep:
            self._tasks = [held for held in self._tasks if (there := held()) is not None and not there.done()]
            self._next_sweep = 2 * len(self._tasks) + SWEEP_TASKS_AT
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Result], *args: Any
    ) -> Future[Result]:
        """As a thread: some time later, in one piece."""
        future: Future[Result] = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            self.is_in_thread = True
            try:
                result = func(*args)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            finally:
                self.is_in_thread = False

        self.call_later(self.schedule.random.random() * THREAD_SECONDS, work)
        return future

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        self.remove_reader(fd)
        self._readers[fd] = Handle(callback, args, self, None)
        self.poll(fd)

    def remove_reader(self, fd: Any) -> bool:
        handle = self._readers.pop(fd, None)
        if handle is not None:
            handle.cancel()
        return handle is not None

    def add_writer(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        self.remove_writer(fd)
        self._writers[fd] = Handle(callback, args, self, None)
        self.poll(fd)

    def remove_writer(self, fd: Any) -> bool:
        handle = self._writers.pop(fd, None)
        if handle is not None:
            handle.cancel()
        return handle is not None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.is_dead:
            error = context.get("exception")
            self.schedule.mistakes.append(f"{self.name}: {context.get('message')}: {error!r}")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def run_until_complete(self, future: Awaitable[Result]) -> Result:  # type: ignore[override]
        async def wait() -> Result:
            return await future

        return self.schedule.run(wait(), self)


def _end(task: "Task[Any]") -> None:
    """Close its coroutine now, with all `finally` in it: later the collector would, at any moment."""
    try:
        task.get_coro().close()
    except (Exception, CancelledError):
        pass  # the process is gone, and with it whoever would have been told; or this is the very task that ended it
