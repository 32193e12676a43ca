"""A source of records at a fixed rate, for our Connect: what bench/java/PacedSourceConnector.java is for Apache's. A record
has in its value when it was due."""

import time
from collections.abc import Sequence

from penstock.connect import Kind, Setting, Settings, SourceConnector, SourceRecord, SourceTask
from penstock.connect.data import STRING

SETTINGS = Settings(
    Setting("topic", Kind.STRING, "The topic."),
    Setting("rate", Kind.INT, "Records a second.", default=1000),
)
PARTITION = {"source": "paced"}
PADDING = "." * 79


class PacedTask(SourceTask):
    settings = SETTINGS

    def start(self) -> None:
        self._interval_ns = 1_000_000_000 // self.values["rate"]
        self._began = time.perf_counter_ns()
        self._number = 0

    def poll(self) -> Sequence[SourceRecord]:
        wait_ns = self._began + self._number * self._interval_ns - time.perf_counter_ns()
        if wait_ns > 0:
            time.sleep(wait_ns / 1e9)
        now = time.perf_counter_ns()
        records = []
        while (due := self._began + self._number * self._interval_ns) <= now:
            records.append(
                SourceRecord(
                    PARTITION,
                    {"number": self._number},
                    self.values["topic"],
                    f"{due:020d} {PADDING}",
                    key=str(self._number),
                    key_schema=STRING,
                    value_schema=STRING,
                )
            )
            self._number += 1
        return records


class PacedSourceConnector(SourceConnector):
    version = "1"
    settings = SETTINGS
    task_class = PacedTask
