"""kafka-protobuf-console-consumer, of Confluent: kafka-console-consumer with a formatter for values with Protobuf schemas."""

from penstock.cli.kafka import console_consumer

TABLE = console_consumer.schema_table(
    "kafka-protobuf-console-consumer",
    "Protobuf",
    "io.confluent.kafka.formatter.protobuf.ProtobufMessageFormatter",
)
execute = console_consumer.execute
