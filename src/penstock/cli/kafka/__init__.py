"""Kafka's command-line tools, one module each, with Kafka 4.3.1's options, texts and exit codes.

The one path: `tool.run` → the module's `execute(argv)` → `options.OptionTable.parse` → the work, on confluent-kafka
(`cli/clients.py`) or, for what librdkafka does not offer, on `cli/wire_client.py`. An error is one line, never a
stack trace; `--help` is ours, in our words.
"""
