"""Messages to records of a sink: converters, then transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.connect.records import Header, SinkRecord
from penstock.connect.tasks.assembly import Assembly
from penstock.connect.tasks.failing import Failing, LeftOut, Stage
from penstock.connect.tasks.sink_records import DeliveredRecord, MessageOrigin


class SinkConversion:
    """Those that are left out do not come back. ToleranceExceeded."""

    def __init__(self, made: Assembly, failing: Failing) -> None:
        self._made, self._run = made, failing.run

    def convert(self, messages: Sequence[Any]) -> list[SinkRecord]:
        made = self._made
        apply, to_key, to_value, to_header = (
            made.apply, made.key.to_value, made.value.to_value, made.header.to_header,
        )  # fmt: skip
        records: list[SinkRecord] = []
        add = records.append
        record: Any
        for message in messages:
            try:
                topic = message.topic()
                key_schema, key = to_key(topic, message.key())
                value_schema, value = to_value(topic, message.value())
                named = message.headers()
                headers: tuple[Header, ...] = (
                    tuple([to_header(topic, name, data) for name, data in named]) if named else ()
                )
                record = DeliveredRecord(
                    message, (topic, message.partition(), message.offset()), key_schema, key, value_schema, value,
                    message.timestamp(), headers,
                )  # fmt: skip
                if apply is not None:
                    record = apply(record)
            except Exception:
                record = self._carefully(message)
            if record is not None:
                add(record)
        return records

    def _carefully(self, message: Any) -> SinkRecord | None:
        """One that has failed, stage by stage; None for one that is left out."""
        run, made, origin = self._run, self._made, MessageOrigin(message)
        topic = message.topic()
        try:
            key_schema, key = run(
                Stage.KEY_CONVERTER, made.key, lambda: made.key.to_value(topic, message.key()), origin
            )
            value_schema, value = run(
                Stage.VALUE_CONVERTER, made.value, lambda: made.value.to_value(topic, message.value()), origin
            )
            headers = run(
                Stage.HEADER_CONVERTER,
                made.header,
                lambda: tuple(made.header.to_header(topic, *each) for each in message.headers() or ()),
                origin,
            )
            place = topic, message.partition(), message.offset()
            record: Any = DeliveredRecord(
                message, place, key_schema, key, value_schema, value, message.timestamp(), headers
            )
            apply = made.apply
            if apply is not None:
                record = run(Stage.TRANSFORMATION, made.chain, lambda: apply(record), origin)
        except LeftOut:
            return None
        return record  # type: ignore[no-any-return]
