"""The list of verbs, each loaded when it is called, and every failure as one line."""

import importlib
import os
import sys
from typing import Any

import click

import penstock
from penstock.cli.unexpected import TRACE_VARIABLE, unexpected
from penstock.client.errors import Refused, Unreachable, UserError

INTERRUPTED = 130

# verb → (where it is, one line for the list)
VERBS = {
    "broker": ("penstock.cli.verbs.app:broker", "Start a broker."),
    "join": ("penstock.cli.verbs.join:join", "Make a broker a member of a cluster of Apache Kafka."),
    "takeover": (
        "penstock.cli.verbs.takeover:takeover",
        "Give what brokers keep to other brokers, compared.",
    ),
    "up": ("penstock.cli.verbs.up:up", "Start a cluster, or a whole stack, on this machine."),
    "down": ("penstock.cli.verbs.up:down", "Stop the cluster on this machine."),
    "restart": ("penstock.cli.verbs.restart:restart", "Restart services of the cluster on this machine."),
    "apply": ("penstock.cli.verbs.apply:apply", "Make the topics, schemas, SQL and connectors of a file."),
    "compose": ("penstock.cli.verbs.compose:compose", "Write a stack's file as one for containers."),
    "status": ("penstock.cli.verbs.status:status", "Show whether a cluster is healthy, and what is wrong."),
    "logs": ("penstock.cli.verbs.logs:logs", "Show what the services of the cluster on this machine write."),
    "doctor": (
        "penstock.cli.verbs.doctor:doctor",
        "Say what is wrong or unwise in a cluster, and what mends it.",
    ),
    "plan": ("penstock.cli.verbs.plan:plan", "Reckon what a cluster should be, or what is beyond the usual."),
    "topics": ("penstock.cli.verbs.topics:topics", "List, describe, create, alter and delete topics."),
    "produce": ("penstock.cli.verbs.produce:produce", "Write records to a topic."),
    "consume": ("penstock.cli.verbs.consume:consume", "Read records of a topic."),
    "configs": ("penstock.cli.verbs.configs:configs", "Describe, set and delete configs."),
    "offsets": ("penstock.cli.verbs.offsets:offsets", "Show where partitions begin and end."),
    "groups": ("penstock.cli.verbs.groups:groups", "See groups and their lag; reset and delete them."),
    "transactions": (
        "penstock.cli.verbs.transactions:transactions",
        "See transactions; find and end those that hang.",
    ),
    "users": ("penstock.cli.verbs.users:users", "List, make, change and remove users that log in."),
    "acls": ("penstock.cli.verbs.acls:acls", "See who may do what; allow it, forbid it, ask why."),
    "quotas": (
        "penstock.cli.verbs.quotas:quotas",
        "See, set and remove quotas of users, clients and addresses.",
    ),
    "certs": ("penstock.cli.verbs.certs:certs", "Make certificates for brokers and clients."),
    "registry": ("penstock.cli.verbs.registry:registry", "Start a schema registry."),
    "dlq": ("penstock.cli.verbs.dlq:dlq", "Show dead letters and replay them."),
    "sql": ("penstock.cli.verbs.sql:sql", "Ask topics in SQL."),
    "log": ("penstock.cli.verbs.log:log", "Check, repair and look at the files of a log directory."),
    "cluster": (
        "penstock.cli.verbs.cluster:cluster",
        "Show the brokers; restart, drain, replace and remove them.",
    ),
    "rest": ("penstock.cli.verbs.rest:rest", "Start the REST proxy."),
    "connect": ("penstock.cli.verbs.connect:connect", "Start a worker of Connect."),
    "connectors": (
        "penstock.cli.verbs.connectors:connectors",
        "Make, watch, restart and delete connectors of Connect.",
    ),
    "lake": ("penstock.cli.verbs.lake:lake", "Keep tables in shape that the lake sink writes."),
    "mirror": ("penstock.cli.verbs.mirror:mirror", "Keep topics and groups of clusters in other clusters."),
    "migrate": ("penstock.cli.verbs.migrate:migrate", "Move topics and groups to another cluster."),
    "sql-server": ("penstock.cli.verbs.sql_server:sql_server", "Start the SQL server."),
    "console": ("penstock.cli.verbs.console:console", "Start the console: clusters in a browser."),
    "completion": ("penstock.cli.verbs.completion:completion", "Print the completion script for a shell."),
}


class Verbs(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module, _, attribute = VERBS[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"{error.message.rstrip('.')}.{hint}", context) from None


EPILOG = """\b
Example:
  penstock broker --port 9092 --data ./data
  penstock topics create orders --partitions 3
  echo hello | penstock produce orders
  penstock consume orders --from-beginning -n 1

The cluster is at localhost:9092, or at $PENSTOCK_BOOTSTRAP, or where -b says. Kafka's own commands
(kafka-topics, kafka-console-consumer and so on) are beside this one.
"""


@click.group(
    cls=Verbs,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(penstock.__version__, prog_name="penstock", message="%(prog)s %(version)s")
def cli() -> None:
    """Penstock: an event-streaming platform of Apache Kafka's kind."""


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True}, add_help_option=False
)
@click.pass_context
def broker(context: click.Context) -> int:
    """Start a broker. `penstock broker --help` tells its options."""
    from penstock.cli.broker import main as broker_main

    return broker_main(context.args)


def run(argv: list[str], command: click.Command = cli, name: str = "penstock") -> int:
    """The exit code; every failure is one line."""
    try:
        outcome: Any = command.main(args=argv, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (Unreachable, UserError, Refused) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has enough. Nothing more may be written, not even by the interpreter's last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get(TRACE_VARIABLE):
            raise
        print(f"{name}: {unexpected(error)}", file=sys.stderr)
        return 1
