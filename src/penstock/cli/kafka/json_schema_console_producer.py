"""kafka-json-schema-console-producer, of Confluent: kafka-console-producer with a reader for values with JSON schemas."""

from penstock.cli.kafka import console_producer

TABLE = console_producer.schema_table(
    "kafka-json-schema-console-producer",
    "JSON",
    "io.confluent.kafka.formatter.json.JsonSchemaMessageReader",
    '{"type":"object"}',
)
execute = console_producer.execute
