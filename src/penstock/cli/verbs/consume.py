"""penstock consume: the records of a topic, from where you say, in the form you say."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import click

from penstock.cli.verbs.common_options import complete_topics, connected, output_choice
from penstock.cli.verbs.record_format import RecordFormat, as_json
from penstock.cli.verbs.value_formats import read_formats
from penstock.client.clients import Connection, metadata, translated
from penstock.client.errors import Refused, UserError
from penstock.client.value_formats import ReadFormats
from penstock.schemas.model import InvalidValue

POLL_S = 0.1
BATCH_RECORDS = 500
LOOKUP_TIMEOUT_S = 10.0
UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


@click.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest record.")
@click.option("--offset", type=int, help="Begin at this offset; -5 means the last five of each partition.")
@click.option(
    "--from-time", metavar="TIME", help="Begin at a time: 2026-11-16T08:00, 10m (ago), or milliseconds."
)
@click.option(
    "-p", "--partition", "partitions", type=int, multiple=True, help="Only this partition; may be repeated."
)
@click.option("-n", "--max-messages", type=click.IntRange(min=0), help="End after so many records.")
@click.option("-e", "--exit", "ends", is_flag=True, help="End when all that is there now has been read.")
@click.option(
    "--timeout", "patience_s", type=float, metavar="S", help="End when nothing came for so many seconds."
)
@click.option("-g", "--group", help="Read as a member of this group, and commit.")
@click.option(
    "-f",
    "--format",
    "template",
    metavar="TEXT",
    default="%v\\n",
    show_default=True,
    help="%v value, %k key, %h headers, %t topic, %p partition, %o offset, %T timestamp, \\n, \\t.",
)
@output_choice("text", "json", help="json prints one object per line.")
@click.option("--read-committed", is_flag=True, help="Leave out what was aborted or is not committed yet.")
@read_formats
@connected
def consume(
    connection: Connection,
    topic: str,
    from_beginning: bool,
    offset: int | None,
    from_time: str | None,
    partitions: tuple[int, ...],
    max_messages: int | None,
    ends: bool,
    patience_s: float | None,
    group: str | None,
    template: str,
    output: str,
    read_committed: bool,
    formats: Callable[[Connection], ReadFormats],
) -> int:
    """Read records, from now on unless you say from where.

    \b
    Example:
      penstock consume orders --from-beginning -n 10 -f '%p/%o %k: %v\\n'
      penstock consume orders --from-time 10m --exit -o json
      penstock consume orders --from-beginning --value-format registry
    """
    if sum((from_beginning, offset is not None, from_time is not None)) > 1:
        raise click.UsageError("Give one of --from-beginning, --offset and --from-time.")
    if group is not None and (offset is not None or from_time is not None or partitions):
        raise click.UsageError(
            "A group begins where it left off: --offset, --from-time and --partition do not go with it."
        )
    start_ms = None if from_time is None else parse_time(from_time, now_s=time.time())
    settings = {
        "group.id": group or "penstock-consume", "enable.auto.commit": "true" if group else "false",
        "auto.offset.reset": "earliest" if from_beginning else "latest", "enable.partition.eof": "true",
        "isolation.level": "read_committed" if read_committed else "read_uncommitted",
        "enable.auto.offset.store": "false", "client.id": "penstock-consume",
    }  # fmt: skip
    parts = formats(connection)
    reader = _Reader(connection.consumer(settings), topic, has_group=group is not None)
    if group is not None:
        reader.consumer.subscribe([topic])
    else:
        reader.assign(partitions, _start(from_beginning, offset, start_ms))
    form = as_json if output == "json" else RecordFormat(template).format

    def show(record: Any) -> bytes:
        return form(record, parts.decoded(record))

    return reader.run(show, max_messages=max_messages, ends=ends, patience_s=patience_s)


def _start(from_beginning: bool, offset: int | None, start_ms: int | None) -> tuple[str, int]:
    if from_beginning:
        return "offset", -2
    if offset is not None:
        return ("offset", offset) if offset >= 0 else ("tail", -offset)
    return ("time", start_ms) if start_ms is not None else ("offset", -1)


def parse_time(text: str, *, now_s: float) -> int:
    """Milliseconds since 1970: of `10m` before now, of a date, or as given."""
    if text.isdigit():
        return int(text)
    ago = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)(?: ago)?", text)
    if ago is not None:
        return int((now_s - float(ago[1]) * UNITS_S[ago[2]]) * 1000)
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise UserError(
            f"'{text}' is not a time: write 2026-11-16T08:00, 10m (ago) or milliseconds"
        ) from None


class _Reader:
    def __init__(self, consumer: Any, topic: str, *, has_group: bool) -> None:
        self.consumer = consumer
        self.topic = topic
        self.has_group = has_group
        self.stopped_by: int | None = None
        self.unfinished: set[int] | None = None
        self.unreadable = 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stopped_by = number

    def assign(self, wanted: tuple[int, ...], start: tuple[str, int]) -> None:
        import confluent_kafka
        from confluent_kafka import KafkaError

        from penstock.client.error_names import refused

        known = metadata(self.consumer, self.topic).topics[self.topic]
        if known.error is not None and known.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise refused(known.error.code())
        if known.error is not None or not known.partitions:
            raise UserError(f"there is no topic '{self.topic}'.")
        for number in wanted:
            if number not in known.partitions:
                raise UserError(f"{self.topic} has no partition {number}: it has {len(known.partitions)}")
        numbers = sorted(wanted or known.partitions)
        kind, value = start
        assigned = [confluent_kafka.TopicPartition(self.topic, number, value) for number in numbers]
        if kind == "tail":
            for one in assigned:
                low, high = self.consumer.get_watermark_offsets(one, timeout=LOOKUP_TIMEOUT_S)
                one.offset = max(low, high - value)
        elif kind == "time":
            try:
                assigned = self.consumer.offsets_for_times(assigned, timeout=LOOKUP_TIMEOUT_S)
            except confluent_kafka.KafkaException as error:
                raise translated(error) from None
        self.consumer.assign(assigned)
        self.unfinished = set(numbers)

    def run(
        self, show: Callable[[Any], bytes], *, max_messages: int | None, ends: bool, patience_s: float | None
    ) -> int:
        try:
            self._read(show, max_messages, ends, patience_s)
        finally:
            self.consumer.close()
        if self.stopped_by is not None:
            return 128 + self.stopped_by
        if self.unreadable:
            sys.stdout.flush()
            raise Refused(f"{self.unreadable} records could not be read")
        return 0

    def _read(
        self, show: Callable[[Any], bytes], max_messages: int | None, ends: bool, patience_s: float | None
    ) -> None:
        count = 0
        last_s = time.monotonic()
        output = sys.stdout.buffer
        while self.stopped_by is None and (max_messages is None or count < max_messages):
            first = self.consumer.poll(POLL_S)
            if first is None:
                if patience_s is not None and time.monotonic() - last_s > patience_s:
                    return
                continue
            wanted = BATCH_RECORDS if max_messages is None else min(BATCH_RECORDS, max_messages - count)
            for record in (first, *(self.consumer.consume(wanted - 1, 0) if wanted > 1 else ())):
                if record.error() is not None:
                    self._on_event(record)
                    continue
                try:
                    output.write(show(record))
                except InvalidValue as error:
                    self._tell(error)
                self.consumer.store_offsets(message=record)
                count += 1
                last_s = time.monotonic()
            output.flush()
            if ends and self.unfinished is not None and not self.unfinished:
                return

    def _tell(self, error: InvalidValue) -> None:
        """Between the lines of the records before and after it."""
        self.unreadable += 1
        sys.stdout.flush()
        print(f"penstock: {error}", file=sys.stderr, flush=True)

    def _on_event(self, event: Any) -> None:
        from confluent_kafka import KafkaError, KafkaException

        code = event.error().code()
        if code == KafkaError._PARTITION_EOF:
            if self.unfinished is None:
                self.unfinished = {one.partition for one in self.consumer.assignment()}
            self.unfinished.discard(event.partition())
        elif code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise UserError(f"there is no topic '{self.topic}'.")
        elif code == KafkaError.GROUP_AUTHORIZATION_FAILED and not self.has_group:
            pass  # librdkafka asks for a group even where none is used
        elif not event.error().retriable():
            raise translated(KafkaException(event.error()))
