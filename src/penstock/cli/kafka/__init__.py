"""Kafka's command-line tools, one module each, with Kafka 4.3.1's options, texts and exit codes.

The one path: `entry_points` → `tool.run` → `options.OptionTable.parse` → the module's `execute` → `penstock.admin`, or, for
records, librdkafka by `client.clients.Connection`. An error is one line, never a stack trace; `--help` is ours, in our words.
"""
