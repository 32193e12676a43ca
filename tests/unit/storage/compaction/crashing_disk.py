"""A real disk whose power fails after some changes: each later one raises."""

from typing import Any

from penstock.runtime.files import Bytes, OsDisk


class PowerCut(Exception):
    pass


class CrashingDisk(OsDisk):
    """Counts what changes names or whole files; `fail_after` of them succeed."""

    __slots__ = ("changes", "fail_after")

    def __init__(self, fail_after: int | None = None) -> None:
        self.changes = 0
        self.fail_after = fail_after

    def _change(self) -> None:
        if self.fail_after is not None and self.changes >= self.fail_after:
            raise PowerCut
        self.changes += 1

    def write(self, path: str, data: Bytes, *, sync: bool = False) -> None:
        self._change()
        super().write(path, data, sync=sync)

    def replace(self, source: str, target: str) -> None:
        self._change()
        super().replace(source, target)

    def delete(self, path: str) -> None:
        self._change()
        super().delete(path)

    def open(self, path: str, *, create: bool = False) -> Any:
        if create:
            self._change()
        return super().open(path, create=create)
