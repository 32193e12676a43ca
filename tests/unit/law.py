"""The law "nothing blocks the event loop", also where a test runs on real files. A room comes under it by its `conftest.py`:

from tests.unit.law import nothing_blocks_the_loop  # noqa: F401
"""

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from penstock.runtime.files import OsDisk, OsFile
from penstock.runtime.locks import DeviceLock
from penstock.testing import loop_law


class WatchedDatabase(sqlite3.Connection):
    """Any statement may wait: for a page, for a sync, or for the statement of another thread."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        loop_law.waits("statement", "the metadata store")
        return super().execute(*arguments)

    def close(self) -> None:
        loop_law.waits("close", "the metadata store")
        super().close()


def _watched(kind: str, real: Callable[..., None]) -> Callable[..., None]:
    def sync(self: Any, *arguments: Any) -> None:
        loop_law.waits(kind, str(arguments[0]) if arguments else "a file")
        real(self, *arguments)

    return sync


def _watched_write(real: Callable[..., None]) -> Callable[..., None]:
    def write(self: Any, path: str, data: Any, *, sync: bool = False) -> None:
        if sync:
            loop_law.waits("sync", path)
        real(self, path, data, sync=sync)

    return write


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(OsFile, "sync", _watched("sync", OsFile.sync))
    for name in ("sync_file", "sync_directory"):
        monkeypatch.setattr(OsDisk, name, _watched(name, getattr(OsDisk, name)))
    monkeypatch.setattr(OsDisk, "write", _watched_write(OsDisk.write))
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=WatchedDatabase))
    monkeypatch.setattr(DeviceLock, "watch", staticmethod(loop_law.waits))
    loop_law.broken.clear()
    yield
    assert loop_law.broken == []
