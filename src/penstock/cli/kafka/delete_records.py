"""kafka-delete-records: moves the beginning of partitions up to an offset; what was before it is gone."""

from penstock.admin.json_documents import entries, field, parse_document
from penstock.admin.topic_changes import delete_records
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import Option, Options, OptionTable
from penstock.client.errors import Refused, UserError
from penstock.client.property_files import read_text
from penstock.model.ids import TopicPartition

TABLE = OptionTable(
    "kafka-delete-records",
    "This tool helps to delete records of the given partitions down to the specified offset.",
    [
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
    with cluster_client(given) as client:
        print("Executing records delete operation", flush=True)
        outcomes = delete_records(client, offsets)
    print("Records delete operation completed:")
    for partition in offsets:
        outcome = outcomes[partition]
        if isinstance(outcome, Refused):
            print(f"partition: {partition}\terror: {outcome.exception_name}: {outcome}")
        else:
            print(f"partition: {partition}\tlow_watermark: {outcome}")
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
