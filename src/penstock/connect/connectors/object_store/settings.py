"""What the object store sink can be configured with, by the names of Confluent's S3 sink."""

from __future__ import annotations

from typing import Any, Final

from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, one_of

_FORMAT: Final = "io.confluent.connect.s3.format."
_PARTITIONER: Final = "io.confluent.connect.storage.partitioner."


def _text(name: str, doc: str, default: Any = None, importance: str = LOW, **more: Any) -> Setting:
    return Setting(name, Kind.STRING, doc, default=default, importance=importance, **more)


SETTINGS: Final = Settings(
    _text("s3.bucket.name", "The bucket; with store.url=file:… or hdfs:… a folder below it, if given.", importance=HIGH),
    _text("s3.region", "The region of the bucket.", "us-west-2"),
    _text("store.url", "Where the S3 API is, such as http://localhost:9000, or file:///folder, or hdfs://host:port/folder. "
          "Without one, Amazon's.", importance=HIGH),
    _text("topics.dir", "The folder that all files are in.", "topics"),
    _text("directory.delim", "Between folders.", "/"),
    _text("file.delim", "Between the parts of a file's name.", "+"),
    Setting("filename.offset.zero.pad.width", Kind.INT, "How many digits an offset has in a file's name.", default=10,
            check=at_least(0), importance=LOW),
    Setting("flush.size", Kind.INT, "So many records of a partition and its files are finished.", check=at_least(1),
            importance=HIGH),
    Setting("rotate.interval.ms", Kind.LONG, "So much time between records of a file, as timestamp.extractor tells it, and it is "
            "finished. -1: no matter how much.", default=-1, importance=HIGH),
    Setting("rotate.schedule.interval.ms", Kind.LONG, "Files are finished at these times of the day, in timezone. "
            "Not exactly once. -1: never.", default=-1),
    _text("format.class", "JsonFormat, AvroFormat, ParquetFormat or ByteArrayFormat.", _FORMAT + "avro.AvroFormat", HIGH),
    _text("keys.format.class", "The format of keys, if they are kept.", _FORMAT + "avro.AvroFormat"),
    _text("headers.format.class", "The format of headers, if they are kept.", _FORMAT + "avro.AvroFormat"),
    Setting("store.kafka.keys", Kind.BOOLEAN, "Whether keys go to files of their own beside the values.", default=False,
            importance=LOW),
    Setting("store.kafka.headers", Kind.BOOLEAN, "Whether headers go to files of their own beside the values.", default=False,
            importance=LOW),
    _text("s3.compression.type", "none or gzip, of JSON and bytes.", "none", check=one_of("none", "gzip")),
    _text("avro.codec", "null, deflate, snappy or bzip2.", "null",
          check=one_of("null", "deflate", "snappy", "bzip2")),
    _text("parquet.codec", "none, gzip, snappy, lz4 or zstd.", "snappy",
          check=one_of("none", "gzip", "snappy", "lz4", "zstd")),
    _text("format.bytearray.extension", "Of files of ByteArrayFormat.", ".bin"),
    _text("format.bytearray.separator", "Between the values of such a file; an end of line by default."),
    _text("behavior.on.null.values", "fail, ignore, or write: its key goes to a tombstone's file.", "fail",
          check=one_of("fail", "ignore", "write", any_case=True)),
    _text("schema.compatibility", "NONE: a file for each schema. BACKWARD, FULL: older schemas become the file's, newer begin "
          "another. FORWARD: the other way round.", "NONE", check=one_of("NONE", "BACKWARD", "FORWARD", "FULL", any_case=True)),
    _text("partitioner.class", "DefaultPartitioner, FieldPartitioner, TimeBasedPartitioner, DailyPartitioner or "
          "HourlyPartitioner.", _PARTITIONER + "DefaultPartitioner", HIGH),
    Setting("partition.field.name", Kind.LIST, "For FieldPartitioner: the fields, with points for what is within others.",
            default=[]),
    Setting("partition.duration.ms", Kind.LONG, "For TimeBasedPartitioner: how much time a folder is for.", default=-1),
    _text("path.format", "For TimeBasedPartitioner: such as 'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH.", ""),
    _text("locale", "The language of names in a path. Names of months are English ones.", ""),
    _text("timezone", "For partitioners by time and scheduled rotation: such as UTC or Europe/Berlin.", ""),
    _text("timestamp.extractor", "Wallclock, Record or RecordField: which time of a record counts.", "Wallclock"),
    _text("timestamp.field", "For RecordField.", "timestamp"),
    _text("aws.access.key.id", "Without it, as Amazon's libraries look for one.", ""),
    Setting("aws.secret.access.key", Kind.PASSWORD, "The secret that belongs to it.", default=None),
    Setting("s3.path.style.access.enabled", Kind.BOOLEAN, "Whether the bucket stands in the path and not in the host's name.",
            default=True, importance=LOW),
    Setting("s3.part.size", Kind.INT, "Taken, and of no effect: parts have the size that pyarrow gives them.", default=26214400,
            importance=LOW),
    _text("storage.class", "Taken, and of no effect: there is one store.", ""),
)  # fmt: skip
