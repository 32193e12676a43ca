"""Following the end of a topic: what is written from now on, the newest rows of it, with a pause.

The ends of the partitions are asked for a few times a second, one question to each leader, and what lies before them
is read as in a search. When more comes than can be looked through, everything is still looked through where there are
conditions; without conditions what nobody would see is left out, and counted.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from penstock.arrow.positions import chosen_partitions
from penstock.client.fetching import Range
from penstock.client.topics import EARLIEST, LATEST, Topic
from penstock.console.messages.model import Progress, Search, Source
from penstock.console.messages.reading import Reader
from penstock.console.messages.rows import Rows
from penstock.console.messages.scan import Finder, TopRows

ASK_EVERY_S: Final = 0.25
LOOK_FOR_PARTITIONS_S: Final = 10.0
MAX_READ_OFFSETS: Final = 200_000
"""Of one partition at a time, without conditions: more than that nobody sees."""


class Tail:
    """`run` blocks until `stopped` is set: call it in a thread."""

    def __init__(self, source: Source, search: Search, rows: Rows, stopped: threading.Event) -> None:
        self._source = source
        self._search = search
        self._rows = rows
        self._stopped = stopped
        self._going = threading.Event()
        self._going.set()
        self.progress = Progress()
        self.top = TopRows(search.limit, newest_first=True)
        self.skipped = 0
        """Records that were not looked at, since more came than anybody could see."""
        self.is_ready = threading.Event()
        """What is written after this is followed."""

    @property
    def is_paused(self) -> bool:
        return not self._going.is_set()

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        """It goes on where it paused."""
        self._going.set()

    def run(self) -> None:
        with Reader(
            self._source.bootstrap,
            self._source.properties,
            committed=self._search.committed,
            stopped=self._stopped,
        ) as reader:
            self.progress.counts = reader.counts
            topic = reader.topic(self._search.topic)
            places = {
                number: offset or 0
                for number, offset in self._ends(reader, topic, self._wanted(topic)).items()
            }
            finder = Finder(self._search, self._rows, self.progress, self.top, self._stopped)
            self.is_ready.set()
            looked_s = time.monotonic()
            while not self._stopped.is_set():
                if not self._going.wait(ASK_EVERY_S):
                    continue
                if time.monotonic() - looked_s > LOOK_FOR_PARTITIONS_S:
                    looked_s, topic = time.monotonic(), reader.topic(self._search.topic)
                    self._add_partitions(reader, topic, places)
                if not self._step(reader, topic, places, finder):
                    self._stopped.wait(ASK_EVERY_S)

    def _step(self, reader: Reader, topic: Topic, places: dict[int, int], finder: Finder) -> bool:
        """Whether there was something."""
        ranges = {}
        for number, end in self._ends(reader, topic, list(places)).items():
            end_offset = end or 0
            start = places[number]
            places[number] = end_offset  # also where the log has become shorter
            if end_offset <= start:
                continue
            if self._search.wanted.is_everything and end_offset - start > MAX_READ_OFFSETS:
                self.skipped += end_offset - start - MAX_READ_OFFSETS
                start = end_offset - MAX_READ_OFFSETS
            ranges[number] = Range(start, end_offset)
        if not ranges:
            return False
        self.top.generation += 1
        for batch in reader.batches(topic, ranges, with_control=self._search.with_control):
            finder.take(batch)
        return True

    def _wanted(self, topic: Topic) -> list[int]:
        return chosen_partitions(topic, self._search.partitions, start="earliest", end="latest")

    def _ends(self, reader: Reader, topic: Topic, partitions: list[int]) -> dict[int, int | None]:
        return reader.offsets(topic, dict.fromkeys(partitions, LATEST))

    def _add_partitions(self, reader: Reader, topic: Topic, places: dict[int, int]) -> None:
        new = [number for number in self._wanted(topic) if number not in places]
        if new:
            firsts = reader.offsets(topic, dict.fromkeys(new, EARLIEST))
            places |= {number: offset or 0 for number, offset in firsts.items()}
