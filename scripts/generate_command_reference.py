"""Writes docs/reference/commands.md from the commands' own help: `python scripts/generate_command_reference.py [--check]`."""

import sys
from importlib import import_module
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
TARGET = ROOT / "docs" / "reference" / "commands.md"

INTRODUCTION = """<!-- Written by scripts/generate_command_reference.py from the commands' own help; do not edit. -->
# Commands

`penstock` is for people: it shows tables and colours on a terminal, and JSON for programs with `-o json`. The commands that begin
with `kafka-` are Apache Kafka's, with its options, output and exit codes (of 4.3.1); `kafka-avro-console-consumer` and the
others for values with schemas are Confluent's. In a checkout they are in `bin/`, with and
without `.sh`. Both kinds work with any Kafka cluster.

| Exit code | `penstock` | `kafka-…` |
|---|---|---|
| 0 | done | done, or `--version` |
| 1 | refused, or no broker answers | refused, no broker answers, a wrong command line, or `--help` |
| 2 | wrong command line | |
| 130 | interrupted with Ctrl-C | interrupted with Ctrl-C |

For a cluster with TLS or SASL, give a file with the properties of a Java client or of librdkafka: `--command-config FILE`. Trust
stores and key stores may be PEM, PKCS12 or JKS files. When a login is refused, the command says why in one line and names the
property. [Security](../security.md) has an example.

What the `kafka-` commands do better than Kafka's:

- You can shorten an option, as long as only one begins like that.
- An error is one line, never a stack trace.
- `kafka-console-producer`, `kafka-producer-perf-test` and `kafka-verifiable-producer` end with 1 when a record was not
  acknowledged.
- `kafka-topics`, `kafka-configs` and `kafka-reassign-partitions` take `--zookeeper HOST:PORT[/CHROOT]`, as before Kafka 3, and
  look for a broker there.

What to know:

- `kafka-consumer-groups` ends with 0 even when the cluster refused something, as Kafka's does. `penstock groups` has real exit
  codes.
- `--help` of `kafka-features`, `kafka-storage` and `kafka-metadata-quorum` ends with 0, as with Apache Kafka.
- `kafka-server-stop` stops what `kafka-server-start` of the same installation has started. It does not stop `penstock broker`.

What they cannot do yet:

- `kafka-configs` has everything but loggers.
- Readers, formatters, deserializers and decoders are Kafka's own, and Confluent's for values with schemas. Other Java classes
  cannot be used.
- `kafka-dump-log` does not decode the metadata records of KRaft and of tiered storage, nor records inside messages of formats 0
  and 1.
- `--print-metrics` of the performance tools has librdkafka's names, not those of the Java client.
- `kafka-features` and `kafka-storage` have no `version-mapping` and no `feature-dependencies`, which are about KRaft.
  `kafka-storage format` only writes `meta.properties`, as a broker of Penstock does at its first start.
- `kafka-metadata-quorum` is for clusters of Apache Kafka in KRaft mode, and has no `add-controller`.
"""

TOOLS = [
    "topics",
    "console_producer",
    "console_consumer",
    "avro_console_producer",
    "avro_console_consumer",
    "json_schema_console_producer",
    "json_schema_console_consumer",
    "protobuf_console_producer",
    "protobuf_console_consumer",
    "configs",
    "acls",
    "get_offsets",
    "delete_records",
    "consumer_groups",
    "streams_application_reset",
    "groups",
    "share_groups",
    "streams_groups",
    "console_share_consumer",
    "transactions",
    "reassign_partitions",
    "leader_election",
    "replica_verification",
    "metadata_quorum",
    "storage",
    "server_start",
    "server_stop",
    "log_dirs",
    "dump_log",
    "broker_api_versions",
    "client_metrics",
    "delegation_tokens",
    "cluster",
    "features",
    "producer_perf_test",
    "consumer_perf_test",
    "e2e_latency",
    "verifiable_producer",
    "verifiable_consumer",
    "zookeeper_security_migration",
]


def document() -> str:
    parts = [INTRODUCTION, "## penstock\n"]
    from penstock.cli.verbs.app import cli

    parts += _click_parts(cli, "penstock", None)
    parts.append("## Kafka's commands\n")
    for name in TOOLS:
        table = import_module(f"penstock.cli.kafka.{name}").TABLE
        parts.append(f"### {table.tool}\n\n```text\n{table.purpose}\n{table.help()}```\n")
    return "\n".join(parts)


def _click_parts(command: click.Command, path: str, parent: click.Context | None) -> list[str]:
    name = path.rpartition(" ")[2]
    settings = {**command.context_settings, "terminal_width": 100}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    parts = [f"### {path}\n\n```text\n{_help(command, context)}\n```\n"]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if name == "broker":
                parts.append(
                    f"### {path} broker\n\nSee `penstock broker --help` and [broker options](broker-options.md).\n"
                )
                continue
            below = command.get_command(context, name)
            assert below is not None
            parts += _click_parts(below, f"{path} {name}", context)
    return parts


def _help(command: click.Command, context: click.Context) -> str:
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def main() -> int:
    text = document()
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
            print(
                f"{TARGET.relative_to(ROOT)} is out of date: run python scripts/generate_command_reference.py"
            )
            return 1
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
