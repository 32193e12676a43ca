import ast
import asyncio
from pathlib import Path

import pytest

import penstock
import simulation
from penstock.runtime.locks import DeviceLock
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.testing import loop_law
from penstock.testing.disk import MemoryDisk
from penstock.testing.loop_law import EXCEPTIONS, LoopBlocked
from tests.unit.storage.batches import StillClock, append


@pytest.fixture(autouse=True)
def _forgotten_afterwards(monkeypatch):
    monkeypatch.setattr(DeviceLock, "watch", staticmethod(loop_law.waits))
    yield
    loop_law.broken.clear()


def log_on(disk: MemoryDisk) -> Log:
    log = Log.open(disk, "/data/orders-0", LogOptions(), StillClock())
    append(log, 5)
    return log


def in_loop(work) -> None:
    async def run() -> None:
        work()

    asyncio.run(run())


def test_a_sync_on_the_loop_is_told_and_kept() -> None:
    log = log_on(MemoryDisk())
    with pytest.raises(LoopBlocked, match=r"sync of /data/orders-0/0+.log on the event loop: .* < Flush.run"):
        in_loop(log.flush)
    assert len(loop_law.broken) == 1


def test_a_thread_may_wait() -> None:
    async def run() -> None:
        await asyncio.to_thread(log.flush)

    log = log_on(MemoryDisk())
    asyncio.run(run())
    assert log.recovery_point == 5


def test_a_cold_read_on_the_loop_breaks_the_law_and_a_warm_one_does_not() -> None:
    disk = MemoryDisk()
    log = log_on(disk)
    in_loop(lambda: log.read(3, 100))
    disk.cool()
    with pytest.raises(LoopBlocked, match="cold read"):
        in_loop(lambda: log.read(3, 100))


def test_a_lock_that_is_held_during_a_sync_is_not_for_the_loop() -> None:
    lock = DeviceLock("the checkpoints")

    def take() -> None:
        with lock:
            pass

    take()
    with pytest.raises(LoopBlocked, match="lock of the checkpoints"):
        in_loop(take)


def test_every_exception_is_a_function_that_is_there() -> None:
    there = set()
    folders = (Path(penstock.__file__).parent, Path(simulation.__file__).parent)
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in tree.body:
            inner = node.body if isinstance(node, ast.ClassDef) else []
            for each in (node, *inner):
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    there.add(each.name if each is node else f"{node.name}.{each.name}")
    assert EXCEPTIONS.keys() <= there
