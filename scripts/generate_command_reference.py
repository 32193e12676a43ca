"""Writes docs/reference/commands.md from the commands' own help: `python scripts/generate_command_reference.py [--check]`."""

import sys
from importlib import import_module
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
TARGET = ROOT / "docs" / "reference" / "commands.md"

INTRODUCTION = """# Commands

Written by `scripts/generate_command_reference.py` from the commands' own help; do not edit.

`penstock` is for people: tables and colours on a terminal, `-o json` for programs. The commands that begin with
`kafka-` are Apache Kafka's, with its options, its output and its exit codes (as of 4.3.1); each is in `bin/` with and
without `.sh`. Both work against any Kafka cluster.

| exit code | `penstock` | `kafka-…` |
|---|---|---|
| 0 | done | done, or `--version` |
| 1 | refused, or no broker answers | refused, no broker answers, a wrong command line, or `--help` |
| 2 | the command line is wrong | |
| 130 | interrupted with Ctrl-C | interrupted with Ctrl-C |

What the `kafka-` commands do that Kafka's own do not: an option may be shortened as long as it can mean only one;
errors are one line, never a stack trace; `kafka-console-producer`, `kafka-producer-perf-test` and
`kafka-verifiable-producer` end with 1 when a record was not acknowledged;
`kafka-topics`, `kafka-configs` and `kafka-reassign-partitions` take `--zookeeper HOST:PORT[/CHROOT]`, as they did
before Kafka 3, and find a broker there.
`kafka-consumer-groups` ends with 0 even where the cluster refused something, as Kafka's does: `penstock groups` has
real exit codes.

For a cluster behind TLS or SASL give the properties of a Java client, or librdkafka's: `--command-config FILE`. Trust and key
stores may be PEM or PKCS12. Who is not let in is told why in one line, with the property's name.

What they cannot do yet: `kafka-configs` knows topics, brokers, groups and client metrics, not users, clients, ips and loggers;
readers, formatters, deserializers and decoders are Kafka's own, not any Java class; `kafka-dump-log` does not decode
KRaft's and the tiered storage's metadata records, nor the records inside messages of formats 0 and 1; `--print-metrics`
of the performance tools has librdkafka's names, not the Java client's; `kafka-features` has no `version-mapping` and no
`feature-dependencies`, which are about KRaft.
"""

TOOLS = [
    "topics",
    "console_producer",
    "console_consumer",
    "configs",
    "get_offsets",
    "delete_records",
    "consumer_groups",
    "groups",
    "transactions",
    "reassign_partitions",
    "leader_election",
    "log_dirs",
    "dump_log",
    "broker_api_versions",
    "client_metrics",
    "cluster",
    "features",
    "producer_perf_test",
    "consumer_perf_test",
    "e2e_latency",
    "verifiable_producer",
    "verifiable_consumer",
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
