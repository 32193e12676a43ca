"""kafka-json-schema-console-consumer, of Confluent: kafka-console-consumer with a formatter for values with JSON schemas."""

from penstock.cli.kafka import console_consumer

TABLE = console_consumer.schema_table(
    "kafka-json-schema-console-consumer",
    "JSON",
    "io.confluent.kafka.formatter.json.JsonSchemaMessageFormatter",
)
execute = console_consumer.execute
