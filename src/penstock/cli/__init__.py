"""The commands: Kafka's own names (`cli/kafka`, one module per tool) and `penstock` with its verbs (`cli/verbs`).

The one path: `main.py` sends `penstock broker` straight to `broker.py`, everything else to click. The tools of `bin/`
are started as `python -m penstock.cli.kafka <tool>`.

Promised: options, output and exit codes of the Kafka tools are those of Apache Kafka 4.3.1; an unreachable broker is
one line within five seconds; nothing heavy (click, rich, confluent_kafka) is imported before it is needed. Not
promised: Java classes given by name (readers, formatters, deserializers) beyond the ones that Kafka ships.
"""
