"""In the driver: what Spark reads, handed over in pieces."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.connect.connectors.side_process import Channel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AHEAD: Final = 2
WAIT_S: Final = 0.2
_PIECE: Final = "piece binary"


def pieces(frame: DataFrame) -> Iterator[pa.Table]:
    """In the frame's order, a partition at a time: no more than that is in the driver's memory."""
    for row in frame.mapInArrow(_packed, _PIECE).toLocalIterator(prefetchPartitions=False):
        yield pa.ipc.open_stream(bytes(row[0])).read_all()


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["piece"])


def _read(reader: Any, given: dict[str, Any]) -> DataFrame:
    reader = reader.format(given["spark.format"]).options(**given["options"])
    if given["spark.schema"]:
        reader = reader.schema(given["spark.schema"])
    if given["spark.table"]:
        frame: DataFrame = reader.table(given["spark.table"])
    elif given["spark.path"]:
        frame = reader.load(given["spark.path"])
    else:
        frame = reader.load()
    return frame


class Handing:
    """Pieces to the task: at most so many that it has not said it is through with."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._free = threading.Semaphore(AHEAD)

    def hand(self, frame: DataFrame, batch: int) -> None:
        first = 0
        for table in pieces(frame):
            self._free.acquire()
            self._channel.send("rows", batch, first, table)
            first += table.num_rows
        self._channel.send("end", batch)

    def taken(self) -> None:
        self._free.release()


def read_batch(session: SparkSession, given: dict[str, Any], channel: Channel, number: int) -> None:
    """Ends with ("end", number). What the task says meanwhile is ("more",)."""
    handing = Handing(channel)
    failures: queue.Queue[BaseException | None] = queue.Queue()

    def work() -> None:
        try:
            handing.hand(_read(session.read, given), number)
            failures.put(None)
        except BaseException as error:
            failures.put(error)
        channel.wake("finished")

    threading.Thread(target=work, daemon=True).start()
    while (message := channel.receive())[0] != "finished":
        if message[0] == "more":
            handing.taken()
    failure = failures.get()
    if failure is not None:
        raise failure


def read_stream(session: SparkSession, given: dict[str, Any], channel: Channel) -> None:
    """Until the task ends. First ("stream", id): as long as the checkpoint is the same, so is the id.

    A batch is over, and the checkpoint goes on, when the task says ("done", batch)."""
    handing = Handing(channel)
    done: queue.Queue[int] = queue.Queue()
    is_named = threading.Event()

    def take(frame: DataFrame, batch: int) -> None:
        is_named.wait()
        handing.hand(frame, batch)
        while done.get() != batch:
            pass

    query = (
        _read(session.readStream, given)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", given["spark.checkpoint.location"])
        .trigger(processingTime=f"{given['spark.trigger.interval.ms']} milliseconds")
        .start()
    )
    channel.send("stream", str(query.id))
    is_named.set()

    def watch() -> None:
        try:
            query.awaitTermination()
        except Exception:
            pass  # `query.exception()` says it
        channel.wake("finished")

    threading.Thread(target=watch, daemon=True).start()
    while (message := channel.receive())[0] != "finished":
        if message[0] == "more":
            handing.taken()
        elif message[0] == "done":
            done.put(message[1])
    failure = query.exception()
    raise failure if failure is not None else RuntimeError("the stream has ended")
