"""kafka-avro-console-producer, of Confluent: kafka-console-producer with a reader for values with Avro schemas."""

from penstock.cli.kafka import console_producer

TABLE = console_producer.schema_table(
    "kafka-avro-console-producer",
    "Avro",
    "io.confluent.kafka.formatter.AvroMessageReader",
    '{"type":"string"}',
)
execute = console_producer.execute
