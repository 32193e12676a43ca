"""Write: rows become records of the sink. Repartition: rows go through a topic of the plan's own.

The records of internal topics have the key in the node's format, because it decides the partition and must be equal to the keys
of
the topic that is joined; the value is packed as the state is: it loses no type, and a table's change has its old row with it.
"""

from __future__ import annotations

from penstock.streams.kernel.building import Building, Emit, kept
from penstock.streams.kernel.records import InputRecord, OutputRecord, Row
from penstock.streams.kernel.row_times import timestamp_reader
from penstock.streams.kernel.state_values import pack, unpack
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import TABLE
from penstock.streams.plan.sources import WindowKind


def write(node: nodes.Write, building: Building) -> Emit:
    topic = building.topic_name(node.topic)
    window = node.window if node.window is not None else node.input.window
    encode_key = building.key_codec(node.schema, node.formats, window, topic).encode
    encode_value = building.value_codec(node.schema, node.formats, topic).encode
    output = building.output
    timestamp_of = None if node.timestamp is None else timestamp_reader(node.timestamp, node.schema)

    def process(row: Row) -> None:
        timestamp = row.timestamp
        if timestamp_of is not None:
            try:
                timestamp = building.stream_time if row.value is None else timestamp_of(row.key, row.value)
            except Exception as error:  # a text that is no time, a NULL
                building.trouble(node, "timestamp", error, row)
                return
            if timestamp < 0:
                building.trouble(node, "timestamp", "the time is before 1970", row)
                return
        try:
            record = OutputRecord(
                topic, encode_key(row.key, row.window), encode_value(row.value), timestamp, row.headers
            )
        except Exception as error:  # a value that the format cannot carry
            building.trouble(node, "serialize", error, row)
            return
        output(record)

    return process


def repartition_topic(node: nodes.Repartition) -> str:
    return f"{node.name}-repartition"


def send_on(node: nodes.Repartition, building: Building) -> Emit:
    """The half before the topic. A join may want the keys' windows in another size: the start is what makes them equal."""
    topic = building.topic_name(repartition_topic(node))
    encode_key = building.key_codec(node.schema, node.formats, node.window, topic).encode
    output = building.output
    resized = node.window if node.window != node.input.window else None

    def process(row: Row) -> None:
        if resized is not None and row.window is not None and resized.kind is not WindowKind.SESSION:
            row = row._replace(window=(row.window[0], row.window[0] + resized.size_ms))
        try:
            key = encode_key(row.key, row.window)
        except Exception as error:  # a value that the format cannot carry
            building.trouble(node, "serialize", error, row)
            return
        # With the time: that of the record is not 0 when it has gone through librdkafka.
        value = pack((row.key, row.window, row.value, row.old, row.partition, row.offset, row.timestamp))
        output(OutputRecord(topic, key, value, row.timestamp or 1, row.headers))

    return process


def receive(node: nodes.Repartition, building: Building, emit: Emit) -> None:
    """The half behind the topic."""
    topic = building.topic_name(repartition_topic(node))
    if node.kind is TABLE and building.needs.wants_store(node):
        emit = kept(building.store(node.name), emit, give_old=False)

    def enter(record: InputRecord) -> None:
        assert record.value is not None
        key, window, value, old, partition, offset, timestamp = unpack(record.value)
        if timestamp > building.stream_time:
            building.stream_time = timestamp
        emit(
            Row(
                None if key is None else tuple(key),
                None if value is None else tuple(value),
                timestamp,
                None if old is None else tuple(old),
                None if window is None else (window[0], window[1]),
                record.headers,
                partition,
                offset,
            )
        )

    building.entry(topic, enter)
