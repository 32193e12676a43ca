"""Which leader epoch began at which offset: the file leader-epoch-checkpoint and the questions of KIP-101 about it.

0            version
2            entries
0 0          epoch 0 began at offset 0
3 1500       epoch 3 began at offset 1500; epochs 1 and 2 wrote nothing
"""

from penstock.runtime.files import Disk, write_atomically

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """Written through to the file system at each change; `Flush` takes it to the device."""

    __slots__ = ("_disk", "_path", "entries", "latest")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self.entries: list[tuple[int, int]] = []
        self.latest = UNDEFINED_EPOCH

    @property
    def path(self) -> str:
        return self._path

    def load(self) -> bool:
        """False when the file is missing or damaged; then there are no entries."""
        try:
            self.entries = _parse(self._disk.read(self._path))
        except (FileNotFoundError, ValueError):
            self.entries = []
            return False
        finally:
            self._changed(write=False)
        return True

    def assign(self, epoch: int, start_offset: int) -> None:
        """An epoch begins. Entries that contradict it (a later epoch, or a later start) are dropped."""
        if epoch == self.latest or epoch < 0:
            return
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= start_offset):
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(the largest known epoch not above the asked one, where it ends), or (-1, -1) when that cannot be
        said.
        """
        if epoch == UNDEFINED_EPOCH or not self.entries or epoch > self.latest:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        floor = None
        for known, start_offset in self.entries:
            if known > epoch:
                # An epoch below all known ones has no data left: it ended where the first known one begins.
                return (epoch if floor is None else floor), start_offset
            floor = known
        raise AssertionError("the latest epoch is above the asked one")

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote an offset; -1 when unknown."""
        for epoch, start_offset in reversed(self.entries):
            if start_offset <= offset:
                return epoch
        return UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        if len(kept) != len(self.entries):
            self.entries = kept
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forgets epochs that end at or below an offset; the one that spans it begins there now."""
        spanning = [entry for entry in self.entries if entry[1] <= start_offset]
        if spanning and (len(spanning) > 1 or spanning[-1][1] != start_offset):
            self.entries[: len(spanning)] = [(spanning[-1][0], start_offset)]
            self._changed()

    def clear(self) -> None:
        if self.entries:
            self.entries = []
            self._changed()

    def _changed(self, *, write: bool = True) -> None:
        self.latest = self.entries[-1][0] if self.entries else UNDEFINED_EPOCH
        if write:
            lines = [
                "0",
                str(len(self.entries)),
                *(f"{epoch} {offset}" for epoch, offset in self.entries),
                "",
            ]
            write_atomically(self._disk, self._path, "\n".join(lines).encode())


def _parse(data: bytes) -> list[tuple[int, int]]:
    lines = data.decode("ascii").split("\n")
    if len(lines) < 2 or lines[0] != "0" or int(lines[1]) != len(lines) - 3:
        raise ValueError("not a leader epoch checkpoint")
    entries = []
    for line in lines[2:-1]:
        epoch, offset = line.split(" ")
        entries.append((int(epoch), int(offset)))
    return entries
