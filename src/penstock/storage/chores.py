"""Work on files that may take long and so is handed out: run it in a thread, then tell the log."""

from collections.abc import Callable, Iterable, Iterator

from penstock.runtime.files import Disk, DiskFile

Chores = Iterator[Callable[[], object]]
"""Work in steps: what each yields is run in a thread, and when that is done the next step is the owner's again."""


class Flush:
    """Brings a log to the device up to end_offset.

    `Log.flushed(flush)` afterwards moves its recovery point.
    """

    __slots__ = ("_directories", "_disk", "_files", "_paths", "cuts", "end_offset")

    def __init__(
        self,
        disk: Disk,
        directories: list[str],
        *,
        files: list[DiskFile],
        paths: list[str],
        end_offset: int,
        cuts: int = 0,
    ) -> None:
        self._disk = disk
        self._directories = directories  # whose entries must last
        self._files = files
        self._paths = paths
        self.end_offset = end_offset
        self.cuts = cuts  # of the log by then: what was cut since and written again is not on the device

    def run(self) -> None:
        for file in self._files:
            file.sync()
        for path in self._paths:
            try:
                self._disk.sync_file(path)
            except FileNotFoundError:
                pass  # its segment was deleted meanwhile
        for directory in self._directories:
            try:
                self._disk.sync_directory(directory)
            except FileNotFoundError:
                pass  # the log was deleted meanwhile


def run_each(flushes: Iterable[Flush]) -> None:
    for flush in flushes:
        flush.run()


def run_here(chores: Chores) -> None:
    """All of it on the calling thread."""
    for chore in chores:
        chore()


class Removal:
    """Files (already renamed out of the way) or a directory to delete.

    A crash before it is made up for at the next open.
    """

    __slots__ = ("_disk", "_trees", "delay_ms", "paths")

    def __init__(
        self, disk: Disk, paths: list[str], *, trees: tuple[str, ...] = (), delay_ms: int = 0
    ) -> None:
        self._disk = disk
        self.paths = paths
        self._trees = trees
        self.delay_ms = delay_ms  # file.delete.delay.ms: how long whoever runs it should wait

    def run(self) -> None:
        for path in self.paths:
            self._disk.delete(path)
        for tree in self._trees:
            self._disk.delete_tree(tree)
