"""kafka-avro-console-consumer, of Confluent: kafka-console-consumer with a formatter for values with Avro schemas."""

from penstock.cli.kafka import console_consumer

TABLE = console_consumer.schema_table(
    "kafka-avro-console-consumer", "Avro", "io.confluent.kafka.formatter.AvroMessageFormatter"
)
execute = console_consumer.execute
