"""What a task does: fetches a range of one partition and yields it as the Arrow batches that Spark takes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from penstock.client.errors import NoSuchTopic, ReadFailed
from penstock.client.fetching import READ_COMMITTED, Range, fetch
from penstock.client.patience import Patience
from penstock.client.topics import EARLIEST, LATEST, Client, Topic
from penstock.model.ids import id_text
from penstock.records.columnar.columns import FIELDS, OFFSET, PARTITION, TOPIC, VALUE
from penstock.records.columnar.decode import Decoder
from penstock.spark.failures import DataLoss
from penstock.spark.options import ValueOptions
from penstock.spark.reading.offsets import OffsetRange
from penstock.spark.reading.topics import gone_after_s, reader_options
from penstock.spark.typed_columns import TypedColumn

RAW_VALUE: Final = "rawValue"
PLACE: Final = (TOPIC, PARTITION, OFFSET)
"""What the message about a broken record tells."""
log = logging.getLogger("penstock.spark")

# Spark's Python workers live on between tasks, and so does the connection to the cluster.
_clients: dict[tuple[tuple[str, str], ...], Client] = {}


def read_range(
    wanted: OffsetRange,
    *,
    schema: pa.Schema,
    values: ValueOptions | None,
    typed: Sequence[TypedColumn] = (),
    properties: Mapping[str, str],
    is_read_committed: bool,
    fail_on_data_loss: bool,
) -> Iterator[pa.RecordBatch]:
    """Every record of the range that is there. DataLoss where records are gone that were there when it was planned."""
    client = _client(properties)
    reading = _RangeReading(client, wanted, RowShape(schema, values, typed), is_read_committed)
    while True:
        try:
            yield from reading.batches()
            return
        except ReadFailed as error:
            lost = reading.records_lost(error)
            if lost is None:
                raise
            if fail_on_data_loss:
                raise DataLoss(lost) from error
            log.warning("%s; reading goes on behind them", lost)
            if not reading.is_worthwhile:
                return


class RowShape:
    """From the columns that are decoded to those that Spark takes, of the same number of rows."""

    def __init__(
        self, schema: pa.Schema, values: ValueOptions | None, typed: Sequence[TypedColumn] = ()
    ) -> None:
        fails_fast = (values is not None and values.fails_fast) or any(each.fails_fast for each in typed)
        wanted = {*schema.names, *(PLACE if fails_fast else ())}
        self.decoded: Final = [name for name in FIELDS if name in wanted]
        self._schema = schema
        self._values = values
        self._typed = typed

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(self.decoded, batch.columns, strict=True))
        if self._values is not None:
            # Not before it is asked for: the parser's compiled code takes a moment to load.
            from penstock.arrow.json_values import parsed_values

            columns[RAW_VALUE] = columns[VALUE]
            columns[VALUE] = parsed_values(
                batch,
                self._schema.field(VALUE).type,
                fails_fast=self._values.fails_fast,
                time_zone=self._values.time_zone,
            )
        for each in self._typed:
            from penstock.arrow.typed_batches import add_typed

            add_typed(columns, each)
        return pa.RecordBatch.from_arrays(
            [
                column if column.type.equals(field.type) else column.cast(field.type)
                for column, field in ((columns[field.name], field) for field in self._schema)
            ],
            schema=self._schema,
        )


class _RangeReading:
    def __init__(self, client: Client, wanted: OffsetRange, shape: RowShape, is_read_committed: bool) -> None:
        self._client = client
        self._name = wanted.topic
        self._partition = wanted.partition
        self._topic_id = wanted.topic_id
        self._left = Range(wanted.start_offset, wanted.end_offset)
        self._shape = shape
        self._isolation_level = READ_COMMITTED if is_read_committed else 0
        self._is_gone = False

    @property
    def is_worthwhile(self) -> bool:
        return self._left.start_offset < self._left.end_offset

    def batches(self) -> Iterator[pa.RecordBatch]:
        topic = self._planned_topic()
        decoder = Decoder(self._name, self._shape.decoded)
        pieces = fetch(
            self._client, topic, {self._partition: self._left}, isolation_level=self._isolation_level
        )
        failure: ReadFailed | None = None
        try:
            for piece in pieces:
                for batch in decoder.decode(
                    piece.records,
                    partition=self._partition,
                    start_offset=piece.start_offset,
                    end_offset=piece.end_offset,
                    aborted=piece.aborted if self._isolation_level else None,
                ):
                    yield self._shape.of(batch)
                self._left = self._left._replace(start_offset=decoder.next_offset)
        except ReadFailed as error:
            failure = error
        # Also before a failure is told: what was decoded has been passed, and will not be read again.
        if (last := decoder.flush()) is not None:
            yield self._shape.of(last)
        if failure is not None:
            raise failure

    def records_lost(self, error: ReadFailed) -> str | None:
        """What is gone, if that is why reading failed; the range is what is left then."""
        place = f"{self._name}-{self._partition}"
        try:
            topic = self._planned_topic()
        except NoSuchTopic:
            self._left = Range(0, 0)
            return f"{place} was deleted"
        except ReadFailed:
            return None
        try:
            earliest, latest = self._ask(topic, EARLIEST), self._ask(topic, LATEST)
        except ReadFailed:
            return None  # also where one answer does not have the topic that was there a moment ago
        start_offset, end_offset = self._left
        if earliest > start_offset:
            self._left = Range(min(earliest, end_offset), end_offset)
            return f"the records of {place} from {start_offset} to before {self._left.start_offset} are gone"
        if latest < end_offset:
            self._left = Range(min(start_offset, latest), latest)
            return f"{place} ends at {latest}, though records up to {end_offset} were there"
        return None

    def _planned_topic(self) -> Topic:
        """NoSuchTopic also where another one has its name now.

        It was there when it was planned: so it is gone when every answer for some time says so, not when one does.
        """
        options = self._client.options
        patience: Patience | None = None  # from the first answer on that does not have it
        while True:
            try:
                topic = self._client.topic(self._name)
                if self._partition in topic.leaders:
                    break
                raise NoSuchTopic(f"{self._name}-{self._partition}", ())
            except NoSuchTopic:
                patience = patience or Patience(gone_after_s(options), options.backoff)
                self._is_gone = self._is_gone or not patience.pause()
                if self._is_gone:
                    raise
        if self._topic_id and id_text(topic.topic_id) != self._topic_id:
            raise NoSuchTopic(self._name, ())
        return topic

    def _ask(self, topic: Topic, timestamp: int) -> int:
        found = self._client.offsets(
            topic, {self._partition: timestamp}, isolation_level=self._isolation_level
        )
        return found[self._partition] or 0


def _client(properties: Mapping[str, str]) -> Client:
    identity = tuple(sorted(properties.items()))
    if identity not in _clients:
        _clients[identity] = Client(reader_options(properties), is_known=True)  # the driver planned with it
    return _clients[identity]
