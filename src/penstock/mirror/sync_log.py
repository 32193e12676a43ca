"""The topic of pairs of offsets, read from its beginning and followed."""

from __future__ import annotations

import time
from typing import Final

from penstock.client.errors import ReadFailed
from penstock.client.options import ClientOptions
from penstock.client.topics import LATEST, Client
from penstock.connect.errors import RetriableError
from penstock.mirror.following import EARLIEST, Follower
from penstock.mirror.formats import read_offset_sync
from penstock.mirror.translation import Offsets
from penstock.model.ids import TopicPartition
from penstock.records.walk import iterate_batches_records

AT_ONCE_S: Final = 0.05
END_S: Final = 60.0


class SyncLog:
    """`offsets` knows what was read so far."""

    def __init__(self, options: ClientOptions, topic: str) -> None:
        self.offsets = Offsets()
        self._options, self._topic = options, topic
        self._follower = Follower(options, {TopicPartition(topic, 0): EARLIEST}, isolation_level=1)
        self._next = 0

    def catch_up(self, *, timeout_s: float = END_S) -> None:
        """Reads all that is there by now. RetriableError."""
        try:
            client = Client(self._options, is_known=True)
            try:
                topic = client.topic(self._topic)
                end = client.offsets(topic, {0: LATEST}, isolation_level=1)[0] or 0
            finally:
                client.close()
            deadline_s = time.monotonic() + timeout_s
            while self._next < end:
                if not self.read(AT_ONCE_S) and time.monotonic() > deadline_s:
                    raise RetriableError(f"{self._topic} cannot be read to its end")
        except ReadFailed as error:  # it may not be there yet
            raise RetriableError(f"{self._topic} cannot be read: {error}") from error

    def read(self, timeout_s: float) -> bool:
        """What comes in the time. False: nothing."""
        answer = self._follower.next(timeout_s)
        if answer is None:
            return False
        try:
            for piece in answer.pieces:
                for header, records in iterate_batches_records(piece.records):
                    self._next = max(self._next, header.last_offset + 1)
                    if header.is_control:
                        continue
                    for record in records:
                        sync = read_offset_sync(record.key, record.value)
                        if sync is not None and record.offset >= piece.start_offset:
                            self.offsets.add(sync)
        finally:
            self._follower.give_back(answer)
        return True

    def close(self) -> None:
        self._follower.close()
