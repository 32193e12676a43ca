"""The driver of a Spark connector's task: a process with a Spark session. `python -m` runs it; see `side_process`.

asked      ("open", {…})              answered   ("opened",)
           ("log",)                              ("log", plan or None, is_written)
           ("plan", {…})                         ("planned",)
           ("write", number, table)              ("written", number)
           ("read", mode)                        ("stream", id) for a stream, ("rows", batch, first, table) …, ("end", batch)
           ("more",)                             nothing: the task has taken one
           ("done", batch)                       nothing: the stream's checkpoint goes on
anything may be answered by               ("failed", text, trace)
"""

from __future__ import annotations

import contextlib
import logging
import traceback
from typing import Any

from penstock.connect.connectors.side_process import Channel
from penstock.connect.connectors.spark.reading import read_batch, read_stream
from penstock.connect.connectors.spark.writing import Log, Writer

NAME = "penstock.connect.connectors.spark.driver"


class Driver:
    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.session: Any = None
        self._given: dict[str, Any] = {}
        self._log: Log | None = None
        self._writer: Writer | None = None

    def run(self) -> None:
        while True:
            message = self.channel.receive()
            try:
                getattr(self, f"on_{message[0]}")(*message[1:])
            except Exception as error:
                self.channel.send(
                    "failed", f"{type(error).__name__}: {_first_lines(error)}", traceback.format_exc()[-8000:]
                )

    def on_open(self, given: dict[str, Any]) -> None:
        from penstock.spark.session import session

        self._given, self._log, self._writer = given, None, None
        self.session = session(given["name"], given["master"], **given["conf"])
        self.channel.send("opened")

    def on_log(self) -> None:
        location = self._given["spark.checkpoint.location"]
        self._log = Log(self.session, location)
        self.channel.send("log", *self._log.last())

    def on_plan(self, plan: dict[str, Any]) -> None:
        assert self._log is not None
        self._log.plan(plan)
        self.channel.send("planned")

    def on_write(self, number: int | None, table: Any) -> None:
        if self._writer is None:
            self._writer = Writer(self.session, self._given)
        if table is not None:
            self._writer.write(table, number)
        if self._log is not None and number is not None:
            self._log.mark(number)
        self.channel.send("written", number)

    def on_read(self, mode: str, number: int) -> None:
        if mode == "stream":
            read_stream(self.session, self._given, self.channel)
        else:
            read_batch(self.session, self._given, self.channel, number)

    def on_more(self) -> None:
        """Of a reading that is over."""

    def on_done(self, batch: int) -> None:
        """Of a batch read: nothing waits for it."""

    def end(self) -> None:
        """Without waiting for what runs: the Java machine goes when nobody holds its input any more."""
        with contextlib.suppress(Exception):
            process = self.session.sparkContext._gateway.proc
            process.stdin.close()
            process.terminate()


def _first_lines(error: BaseException) -> str:
    return "\n".join(str(error).strip().splitlines()[:4])


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    drivers: list[Driver] = []

    def end() -> None:
        for driver in drivers:
            driver.end()

    channel = Channel(end)
    drivers.append(Driver(channel))
    drivers[0].run()


if __name__ == "__main__":
    main()
