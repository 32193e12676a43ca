"""The plugins that come along: the name under which `/connector-plugins` lists them, what they are, where they are, and other
names. A class of Kafka Connect, or of somebody else, that is taken over goes by its name there.
"""

from __future__ import annotations

from typing import Final

_KAFKA: Final = "org.apache.kafka.connect."
_HERE: Final = "penstock.connect."

Row = tuple[str, ...]
"""Name, kind, module:Class, and its other names, if any."""


def _ours(kind: str, name: str, where: str, *others: str) -> Row:
    return (name, kind, _HERE + where, *others)


def _both(name: str, where: str) -> tuple[Row, Row]:
    """A converter of values, and of headers."""
    return _ours("converter", _KAFKA + name, where), _ours("header_converter", _KAFKA + name, where)


def _sided(name: str, module: str) -> tuple[Row, Row]:
    """A transform of keys, and of values."""
    return _transform(f"{name}$Key", module, f"{name}Key"), _transform(
        f"{name}$Value", module, f"{name}Value"
    )


def _transform(name: str, module: str, class_name: str = "") -> Row:
    return _ours("transformation", f"{_KAFKA}transforms.{name}", f"transforms.{module}:{class_name or name}")


def _debezium(name: str, module: str) -> Row:
    where = f"transforms.debezium.{module}:{name.rpartition('.')[2]}"
    return _ours("transformation", f"io.debezium.transforms.{name}", where)


def _captures(name: str) -> Row:
    where = f"connectors.change_capture.source:{name.rpartition('.')[2]}"
    return _ours("source", f"io.debezium.connector.{name}", where)


def _predicate(name: str) -> Row:
    return _ours("predicate", f"{_KAFKA}transforms.predicates.{name}", f"transforms.predicates:{name}")


TABLE: Final[tuple[Row, ...]] = (
    _ours("source", _KAFKA + "file.FileStreamSourceConnector", "connectors.file:FileSource"),
    _ours("sink", _KAFKA + "file.FileStreamSinkConnector", "connectors.file:FileSink"),
    (_KAFKA + "mirror.MirrorSourceConnector", "source", "penstock.mirror.source:MirrorSource"),
    (_KAFKA + "mirror.MirrorCheckpointConnector", "source", "penstock.mirror.checkpoints:MirrorCheckpoint"),
    (_KAFKA + "mirror.MirrorHeartbeatConnector", "source", "penstock.mirror.heartbeats:MirrorHeartbeat"),
    _ours(
        "source",
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connectors.jdbc.source:JdbcSource",
        "io.aiven.connect.jdbc.JdbcSourceConnector",
    ),
    _ours(
        "sink",
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        "connectors.jdbc.sink:JdbcSink",
        "io.aiven.connect.jdbc.JdbcSinkConnector",
    ),
    _ours("sink", "io.confluent.connect.s3.S3SinkConnector", "connectors.object_store.task:ObjectStoreSink"),
    _ours("sink", "org.apache.iceberg.connect.IcebergSinkConnector", "connectors.lake.task:LakeSink"),
    _ours("source", _HERE + "spark.SparkSourceConnector", "connectors.spark.source:SparkSource"),
    _ours("sink", _HERE + "spark.SparkSinkConnector", "connectors.spark.sink:SparkSink"),
    _ours(
        "source",
        "io.confluent.kafka.connect.datagen.DatagenConnector",
        "connectors.datagen.source:DatagenSource",
    ),
    _ours(
        "sink",
        "io.aiven.kafka.connect.http.HttpSinkConnector",
        "connectors.http.sink:HttpSink",
    ),
    _ours("source", _HERE + "connectors.HttpSourceConnector", "connectors.http.source:HttpSource"),
    _ours("sink", "com.redis.kafka.connect.RedisSinkConnector", "connectors.redis.sink:RedisSink"),
    _ours(
        "source",
        "com.redis.kafka.connect.RedisStreamSourceConnector",
        "connectors.redis.stream_source:RedisStreamSource",
        "com.redis.kafka.connect.RedisSourceConnector",
    ),
    _ours(
        "source",
        "com.redis.kafka.connect.RedisKeysSourceConnector",
        "connectors.redis.keys_source:RedisKeysSource",
    ),
    _captures("db2.Db2Connector"),
    _captures("mariadb.MariaDbConnector"),
    _captures("mongodb.MongoDbConnector"),
    _captures("mysql.MySqlConnector"),
    _captures("oracle.OracleConnector"),
    _captures("postgresql.PostgresConnector"),
    _captures("sqlserver.SqlServerConnector"),
    _ours(
        "sink",
        "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        "connectors.elasticsearch.sink:ElasticsearchSink",
        "io.aiven.connect.elasticsearch.ElasticsearchSinkConnector",
        "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector",
        "io.aiven.kafka.connect.opensearch.OpenSearchSinkConnector",
    ),
    _ours(
        "source", "com.mongodb.kafka.connect.MongoSourceConnector", "connectors.mongodb.source:MongoSource"
    ),
    _ours("sink", "com.mongodb.kafka.connect.MongoSinkConnector", "connectors.mongodb.sink:MongoSink"),
    *_both("json.JsonConverter", "converters.json:JsonConverter"),
    *_both("storage.StringConverter", "converters.simple:StringConverter"),
    *_both("converters.ByteArrayConverter", "converters.simple:ByteArrayConverter"),
    *_both("converters.BooleanConverter", "converters.simple:BooleanConverter"),
    *_both("converters.ShortConverter", "converters.simple:ShortConverter"),
    *_both("converters.IntegerConverter", "converters.simple:IntegerConverter"),
    *_both("converters.LongConverter", "converters.simple:LongConverter"),
    *_both("converters.FloatConverter", "converters.simple:FloatConverter"),
    *_both("converters.DoubleConverter", "converters.simple:DoubleConverter"),
    _ours(
        "header_converter",
        _KAFKA + "storage.SimpleHeaderConverter",
        "converters.header:SimpleHeaderConverter",
    ),
    _ours("converter", "io.confluent.connect.avro.AvroConverter", "converters.registry:AvroConverter"),
    _ours(
        "converter",
        "io.confluent.connect.json.JsonSchemaConverter",
        "converters.registry:JsonSchemaConverter",
    ),
    _ours(
        "converter",
        "io.confluent.connect.protobuf.ProtobufConverter",
        "converters.registry:ProtobufConverter",
    ),
    *_sided("Cast", "cast"),
    _transform("DropHeaders", "headers"),
    *_sided("ExtractField", "extract_field"),
    _transform("Filter", "filter"),
    *_sided("Flatten", "flatten"),
    *_sided("HeaderFrom", "header_from"),
    *_sided("HoistField", "hoist_field"),
    *_sided("InsertField", "insert_field"),
    _transform("InsertHeader", "headers"),
    *_sided("MaskField", "mask_field"),
    _transform("RegexRouter", "regex_router"),
    *_sided("ReplaceField", "replace_field"),
    *_sided("SetSchemaMetadata", "set_schema_metadata"),
    *_sided("TimestampConverter", "timestamp_converter"),
    _transform("TimestampRouter", "timestamp_router"),
    _transform("ValueToKey", "value_to_key"),
    _ours(
        "transformation",
        _HERE + "transforms.python.PythonTransform",
        "transforms.python:PythonTransform",
        "python",
    ),
    _debezium("ByLogicalTableRouter", "logical_tables"),
    _debezium("ExtractNewRecordState", "new_record_state"),
    _debezium("outbox.EventRouter", "event_router"),
    _predicate("HasHeaderKey"),
    _predicate("RecordIsTombstone"),
    _predicate("TopicNameMatches"),
)
