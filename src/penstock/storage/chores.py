"""Work on files that may take long and so is handed out: run it in a thread, then tell the log."""

from collections.abc import Iterable

from penstock.runtime.files import Disk, DiskFile


class Flush:
    """Brings a log to the device up to end_offset.

    `Log.flushed(flush)` afterwards moves its recovery point.
    """

    __slots__ = ("_directory", "_disk", "_files", "_paths", "end_offset")

    def __init__(
        self, disk: Disk, directory: str, *, files: list[DiskFile], paths: list[str], end_offset: int
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._files = files
        self._paths = paths
        self.end_offset = end_offset

    def run(self) -> None:
        for file in self._files:
            file.sync()
        for path in self._paths:
            try:
                self._disk.sync_file(path)
            except FileNotFoundError:
                pass  # its segment was deleted meanwhile
        self._disk.sync_directory(self._directory)


def run_each(flushes: Iterable[Flush]) -> None:
    for flush in flushes:
        flush.run()


class Removal:
    """Files (already renamed out of the way) or a directory to delete.

    A crash before it is made up for at the next open.
    """

    __slots__ = ("_disk", "_trees", "paths")

    def __init__(self, disk: Disk, paths: list[str], *, trees: tuple[str, ...] = ()) -> None:
        self._disk = disk
        self.paths = paths
        self._trees = trees

    def run(self) -> None:
        for path in self.paths:
            self._disk.delete(path)
        for tree in self._trees:
            self._disk.delete_tree(tree)
