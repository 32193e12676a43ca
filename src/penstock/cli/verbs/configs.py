"""penstock configs: settings of topics and brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from penstock.cli.clients import Connection
from penstock.cli.settings import BROKER, TOPIC, Change, alter_settings, describe_settings
from penstock.cli.verbs.common_options import complete_topics, connected, output_option, pairs

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_SOURCES = (4, 5)


@click.group()
def configs() -> None:
    """Describe, set and delete settings of topics and brokers.

    \b
    Example:
      penstock configs set --topic orders retention.ms=86400000
    """


def _target(command: F) -> F:
    """Adds --topic, --broker and --broker-defaults, of which exactly one must be given."""
    decorated = click.option("--broker-defaults", is_flag=True, help="What holds for all brokers.")(command)
    decorated = click.option("--broker", metavar="ID", help="The settings of this broker.")(decorated)
    return click.option(
        "-t", "--topic", metavar="TOPIC", help="The settings of this topic.", shell_complete=complete_topics
    )(decorated)


def _resource(topic: str | None, broker: str | None, broker_defaults: bool) -> tuple[int, str]:
    if sum((topic is not None, broker is not None, broker_defaults)) != 1:
        raise click.UsageError("Give one of --topic, --broker and --broker-defaults.")
    return (TOPIC, topic) if topic is not None else (BROKER, broker or "")


def _name(kind: int, name: str) -> str:
    return name if kind == TOPIC else f"broker {name}" if name else "all brokers"


@configs.command()
@_target
@click.option("--all", "every", is_flag=True, help="Show the settings that nobody changed too.")
@output_option
@connected
def describe(
    connection: Connection,
    topic: str | None,
    broker: str | None,
    broker_defaults: bool,
    every: bool,
    output: str,
) -> None:
    """Show settings: those that were changed, or --all.

    \b
    Example:
      penstock configs describe --topic orders --all
    """
    from penstock.cli.kafka.configs import SOURCE_NAMES
    from penstock.cli.verbs.output import show_json, show_table

    kind, name = _resource(topic, broker, broker_defaults)
    connection.check()
    settings = describe_settings(connection, kind, name)
    rows = [
        (one.name, "(hidden)" if one.is_sensitive else one.value, SOURCE_NAMES.get(one.source, "UNKNOWN"))
        for one in settings
        if every or one.source not in DEFAULT_SOURCES
    ]
    if output == "json":
        show_json([{"name": key, "value": value, "source": source} for key, value, source in rows])
    elif rows:
        words = [
            (key, value, source.removesuffix("_CONFIG").lower().replace("_", " "))
            for key, value, source in rows
        ]
        show_table(["setting", "value", "set by"], words)
    else:
        click.echo(f"Nothing was changed for {_name(kind, name)}; --all shows what holds.", err=True)


@configs.command("set")
@_target
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
@connected
def set_settings(
    connection: Connection,
    topic: str | None,
    broker: str | None,
    broker_defaults: bool,
    settings: tuple[str, ...],
) -> None:
    """Change settings.

    \b
    Example:
      penstock configs set --topic orders retention.ms=86400000 cleanup.policy=delete,compact
    """
    from penstock.cli.verbs.output import say

    kind, name = _resource(topic, broker, broker_defaults)
    added = pairs(settings, what="the setting")
    connection.check()
    alter_settings(connection, kind, name, Change(added, []))
    say(f"changed {', '.join(added)} of {_name(kind, name)}")


@configs.command()
@_target
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@connected
def delete(
    connection: Connection,
    topic: str | None,
    broker: str | None,
    broker_defaults: bool,
    names: tuple[str, ...],
) -> None:
    """Take settings back, so that the default holds again.

    \b
    Example:
      penstock configs delete --topic orders retention.ms
    """
    from penstock.cli.verbs.output import say

    kind, name = _resource(topic, broker, broker_defaults)
    connection.check()
    alter_settings(connection, kind, name, Change({}, list(names)))
    say(f"took back {', '.join(names)} of {_name(kind, name)}")
