"""The law "nothing blocks the event loop", also where a test of the broker runs on real files."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.runtime.files import OsDisk, OsFile
from penstock.runtime.locks import DeviceLock
from penstock.testing import loop_law


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
def _nothing_blocks_the_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(OsFile, "sync", _watched("sync", OsFile.sync))
    for name in ("sync_file", "sync_directory"):
        monkeypatch.setattr(OsDisk, name, _watched(name, getattr(OsDisk, name)))
    monkeypatch.setattr(OsDisk, "write", _watched_write(OsDisk.write))
    monkeypatch.setattr(DeviceLock, "watch", staticmethod(loop_law.waits))
    loop_law.broken.clear()
    yield
    assert loop_law.broken == []
