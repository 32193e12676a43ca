"""The sessions that this broker had with the metadata store. It may remove nodes of these sessions, and of no others.

The last registered session is written to a file beside the logs. So a broker that was killed and started again recognises its
old node, and need not wait for the timeout of the old session. No other process can be in that session: its process held the
lock of the directory, and now we hold it. The file is not synced: if it is lost, the broker only has to wait. A thread writes
it, so that nobody waits for it.
"""

import logging
from collections import deque
from typing import Final

from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.runtime.files import write_atomically
from penstock.runtime.locks import DeviceLock
from penstock.runtime.pools import Pool

FILE_NAME: Final = "penstock-session"
KEPT: Final = 8
"""Of this process: the oldest has ended long before."""

log = logging.getLogger("penstock.broker")


class OwnSessions:
    def __init__(self, partitions: HeldPartitions, writers: Pool) -> None:
        self._partitions = partitions
        self._writers = writers
        self._writing = DeviceLock("the files that name our session")
        self._ids: deque[int | None] = deque((_read(partitions, path) for path in self._paths()), maxlen=KEPT)

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._ids

    def add(self, session_id: int) -> None:
        self._ids.append(session_id)
        self._writers.run(self._write, self._paths())

    def _write(self, paths: list[str]) -> None:
        with self._writing:
            last = self._ids[-1]  # not the one that this was begun for: threads may overtake each other
            assert last is not None
            for path in paths:
                try:
                    write_atomically(self._partitions.disk, path, b"%d\n" % last)
                except OSError as error:
                    log.warning("cannot write %s: %s", path, error)

    def _paths(self) -> list[str]:
        return [f"{each.path}/{FILE_NAME}" for each in self._partitions.log_directories.online]


def _read(partitions: HeldPartitions, path: str) -> int | None:
    try:
        return int(partitions.disk.read(path))
    except (OSError, ValueError):
        return None
