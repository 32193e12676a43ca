"""The worker as a process of its own, over its two pipes."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.broker.upkeep.compaction_worker import CompactionWorker, WorkerDied
from penstock.runtime.files import OsDisk
from penstock.storage.compaction.task import (
    CleanedSegment,
    CleaningResult,
    CleaningTask,
    Failed,
    Message,
    decode_message,
    decode_task,
    encode_message,
    encode_task,
)
from penstock.storage.log import Log
from tests.unit.storage.compaction.cleaning import put, shown, swap_in, task_for

OpenLog = Callable[..., Log]
DEADLINE_S = 90  # a cold cache means compiling first


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    log = open_log(compacted=True)
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", "2"))
    log.roll()
    return log


async def messages_of(worker: CompactionWorker, task: CleaningTask) -> list[Message]:
    return [message async for message in worker.run(task)]


def in_loop(work: Callable[[CompactionWorker], object]) -> None:
    async def run() -> None:
        worker = await CompactionWorker.start()
        try:
            await asyncio.wait_for(work(worker), DEADLINE_S)  # type: ignore[arg-type]
        finally:
            await worker.kill()

    asyncio.run(run())


def test_a_task_and_every_message_survive_the_pipe(log: Log) -> None:
    task = task_for(log)
    assert decode_task(encode_task(task)) == task
    result = CleaningResult(1, 2, 3, 4, 5, 6, 7)
    for message in (0.5, CleanedSegment(0, [0, 3], 10, 8, 12), result, Failed("no room", False)):
        assert decode_message(encode_message(message)) == message
    with pytest.raises(ValueError):
        decode_message(b"{}\n")


def test_a_worker_cleans_log_after_log_and_ends_when_asked(disk: OsDisk, log: Log) -> None:
    async def work(worker: CompactionWorker) -> None:
        for _ in range(2):
            messages = await messages_of(worker, task_for(log))
            (cleaned,) = (message for message in messages if isinstance(message, CleanedSegment))
            assert isinstance(messages[-1], CleaningResult)
            swap_in(disk, log, cleaned)
        await worker.end()
        assert not worker.is_running

    in_loop(work)
    assert shown(log) == [(1, "b", "1"), (2, "a", "2")]


def test_a_cleaned_segment_keeps_the_time_of_its_last_source(log: Log) -> None:
    path = Path(log.directory, f"{0:020d}.log")
    os.utime(path, (1_000_000, 1_000_000))

    async def work(worker: CompactionWorker) -> None:
        await messages_of(worker, task_for(log))

    in_loop(work)
    assert Path(f"{path}.cleaned").stat().st_mtime == 1_000_000


def test_a_worker_says_that_a_log_is_corrupt_and_leaves_nothing_behind(log: Log) -> None:
    path = Path(log.directory, f"{0:020d}.log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    async def work(worker: CompactionWorker) -> None:
        last = (await messages_of(worker, task_for(log)))[-1]
        assert isinstance(last, Failed)
        assert last.corrupt
        assert "at byte" in last.reason
        assert worker.is_running

    in_loop(work)
    assert not [name for name in os.listdir(log.directory) if name.endswith(".cleaned")]


def test_a_worker_survives_a_directory_that_is_gone(log: Log) -> None:
    async def work(worker: CompactionWorker) -> None:
        gone = task_for(log)._replace(directory=log.directory + "-gone")
        last = (await messages_of(worker, gone))[-1]
        assert isinstance(last, Failed)
        assert not last.corrupt
        assert isinstance((await messages_of(worker, task_for(log)))[-1], CleaningResult)

    in_loop(work)


def test_a_killed_worker_is_noticed(log: Log) -> None:
    async def work(worker: CompactionWorker) -> None:
        slow = asyncio.ensure_future(messages_of(worker, task_for(log)._replace(max_bytes_per_second=0.001)))
        await asyncio.sleep(0)
        os.kill(worker.pid, 9)
        with pytest.raises(WorkerDied, match=r"signal 9|gone before"):
            await slow

    in_loop(work)


def test_a_worker_reads_and_writes_no_faster_than_it_may(log: Log) -> None:
    async def work(worker: CompactionWorker) -> None:
        await messages_of(worker, task_for(log))
        size = sum(segment.size_bytes for segment in task_for(log).segments)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await messages_of(worker, task_for(log)._replace(max_bytes_per_second=size * 2.0))
        assert loop.time() - began > 0.9  # two readings and what is written

    in_loop(work)


def test_a_worker_ends_when_its_broker_is_gone() -> None:
    worker = subprocess.Popen(
        [sys.executable, "-m", "penstock.storage.compaction.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert worker.stdin is not None
    worker.stdin.close()
    assert worker.wait(DEADLINE_S) == 0


def test_the_broker_imports_neither_numba_nor_numpy() -> None:
    program = "import sys, penstock.broker.process, penstock.storage.compaction.choose, penstock.storage.compaction.task\n"
    program += "print([name for name in ('numpy', 'numba', 'llvmlite') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
