"""A compaction worker as the broker sees it: a process that takes a task and answers with messages.

Compiled code and its memory live there, so that neither ever touches the broker's own process.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.storage.compaction.task import CleaningTask, Message

LINE_LIMIT: Final = 16 * 1024 * 1024
END_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 30.0
"""A worker that has had nothing to do for so long is ended."""


class WorkerDied(Exception):
    """The process ended in the middle of a task."""


class CompactionWorker:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> "CompactionWorker":
        """Ready at once for a task; the first one waits until the walks are loaded, or compiled."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "penstock.storage.compaction.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
            start_new_session=True,  # a Ctrl-C at the terminal is for the broker, which then ends its workers
        )
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def run(self, task: "CleaningTask") -> "AsyncIterator[Message]":
        """The worker's messages up to the last one of the task; WorkerDied when it ends before."""
        from penstock.storage.compaction.task import CleaningResult, Failed, decode_message, encode_task

        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(encode_task(task))
            await process.stdin.drain()
        except ConnectionError:
            raise WorkerDied("it ended before it got its task") from None
        while True:
            line = await process.stdout.readline()
            if not line.endswith(b"\n"):
                code = await process.wait()
                raise WorkerDied(
                    f"it was killed by signal {-code}" if code < 0 else f"it ended with code {code}"
                )
            message = decode_message(line)
            yield message
            if isinstance(message, (CleaningResult, Failed)):
                return

    async def end(self) -> None:
        """Of an idle worker: it ends by itself when nothing more can come."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), END_SECONDS)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """Of one in the middle of a task, which nobody wants any more. What it wrote so far is the caller's to delete."""
        if self.is_running:
            try:
                self._process.kill()
            except ProcessLookupError:
                pass
        await self._process.wait()


class IdleWorkers:
    """Workers without a task, kept for a while for the next one."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._idle: list[tuple[CompactionWorker, float]] = []

    async def take(self) -> CompactionWorker:
        """One of them, or a new one."""
        while self._idle:
            worker, _ = self._idle.pop()
            if worker.is_running:
                return worker
        return await CompactionWorker.start()

    def put_back(self, worker: CompactionWorker) -> None:
        self._idle.append((worker, self._monotonic()))

    async def end_old(self) -> None:
        now = self._monotonic()
        old = [worker for worker, since in self._idle if now - since > IDLE_SECONDS or not worker.is_running]
        self._idle = [pair for pair in self._idle if pair[0] not in old]
        await asyncio.gather(*(worker.end() for worker in old))

    async def end_all(self) -> None:
        await asyncio.gather(*(worker.end() for worker, _ in self._idle))
        self._idle.clear()
