"""kafka-protobuf-console-producer, of Confluent: kafka-console-producer with a reader for values with Protobuf schemas."""

from penstock.cli.kafka import console_producer

TABLE = console_producer.schema_table(
    "kafka-protobuf-console-producer",
    "Protobuf",
    "io.confluent.kafka.formatter.protobuf.ProtobufMessageReader",
    'syntax = "proto3"; message Order { int64 id = 1; }',
)
execute = console_producer.execute
