"""kafka-delete-records: moves the beginning of partitions up to an offset; what was before it is gone."""

import sys
from typing import Any

from penstock.cli.clients import result
from penstock.cli.failures import Refused, UserError
from penstock.cli.json_documents import entries, field, parse_document
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, Option, Options, OptionTable
from penstock.cli.property_files import read_text
from penstock.model.ids import TopicPartition

HIGH_WATERMARK = -1

TABLE = OptionTable(
    "kafka-delete-records",
    "This tool helps to delete records of the given partitions down to the specified offset.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(
            "offset-json-file",
            "REQUIRED: for each partition the offset below which records go; -1 means all records that are there now:\n"
            '{"partitions": [{"topic": "orders", "partition": 0, "offset": 100}], "version": 1}',
            "FILE",
        ),
    ],
    examples=["kafka-delete-records --bootstrap-server localhost:9092 --offset-json-file delete.json"],
)


def execute(given: Options) -> int:
    given.require("bootstrap-server", "offset-json-file")
    path = given.value("offset-json-file") or ""
    cluster = connection(given)
    try:
        text = read_text(path)
    except UserError as error:
        tool.complain(f"Unable to read file {path}: {str(error).rpartition(': ')[2]}")
        return 1
    try:
        offsets = parse_offsets(text)
    except UserError as error:
        tool.complain(str(error))
        return 1
    admin = cluster.admin()
    print("Executing records delete operation", flush=True)
    futures = _delete(admin, offsets)
    print("Records delete operation completed:")
    for partition, future in futures.items():
        print(f"partition: {partition}\t{_outcome(future)}")
    return 0


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    document = parse_document(text)
    if "partitions" not in document:
        raise UserError("Missing partitions field")
    offsets: dict[TopicPartition, int] = {}
    twice = []
    for entry in entries(document, "partitions", of="topic, partition and offset"):
        partition = TopicPartition(field(entry, "topic", str), field(entry, "partition", int))
        if partition in offsets:
            twice.append(str(partition))
        offsets[partition] = field(entry, "offset", int)
    if twice:
        raise UserError(f"Offset json file contains duplicate topic partitions: {','.join(twice)}")
    return offsets


def _delete(admin: Any, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, Any]:
    import confluent_kafka

    if not offsets:
        return {}
    asked = [
        confluent_kafka.TopicPartition(
            one.topic, one.partition, confluent_kafka.OFFSET_END if offset == HIGH_WATERMARK else offset
        )
        for one, offset in offsets.items()
    ]
    try:
        futures = admin.delete_records(asked)
    except ValueError as error:
        raise UserError(str(error)) from None
    return {TopicPartition(one.topic, one.partition): future for one, future in futures.items()}


def _outcome(future: Any) -> str:
    try:
        return f"low_watermark: {result(future).low_watermark}"
    except Refused as error:
        return f"error: {error.exception_name}: {error}"


def main(argv: list[str]) -> int:
    return tool.run(TABLE, execute, argv)


if __name__ == "__main__":
    tool.leave(main(sys.argv[1:]))
