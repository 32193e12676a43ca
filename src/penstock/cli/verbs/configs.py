"""penstock configs: configs of topics and brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.verbs.common_options import administered, complete_topics, output_option, pairs
from penstock.cli.verbs.output import Column, say, show_rows

if TYPE_CHECKING:
    from penstock.admin import Cluster, ConfigResource
    from penstock.admin.configs import ConfigEntry

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_SOURCES = (4, 5)


@click.group()
def configs() -> None:
    """Describe, set and delete configs of topics and brokers.

    \b
    Example:
      penstock configs set --topic orders retention.ms=86400000
    """


def _target(command: F) -> F:
    """Adds --topic, --broker and --broker-defaults, of which exactly one must be given; the command gets a `resource`."""
    from penstock.cli.verbs.common_options import like

    def with_resource(
        *args: Any, topic: str | None, broker: int | None, broker_defaults: bool, **options: Any
    ) -> Any:
        return command(*args, resource=_resource(topic, broker, broker_defaults), **options)

    decorated = click.option("--broker-defaults", is_flag=True, help="What holds for all brokers.")(
        like(with_resource, command)
    )
    decorated = click.option("--broker", type=int, metavar="ID", help="The configs of this broker.")(
        decorated
    )
    return click.option(  # type: ignore[return-value]
        "-t", "--topic", metavar="TOPIC", help="The configs of this topic.", shell_complete=complete_topics
    )(decorated)


def _resource(topic: str | None, broker: int | None, broker_defaults: bool) -> ConfigResource:
    from penstock.admin import ConfigResource

    if sum((topic is not None, broker is not None, broker_defaults)) != 1:
        raise click.UsageError("Give one of --topic, --broker and --broker-defaults.")
    if topic is not None:
        return ConfigResource.topic(topic)
    return ConfigResource.all_brokers() if broker is None else ConfigResource.broker(broker)


ENTRIES: list[Column[ConfigEntry]] = [
    Column("name", lambda one: one.name, "config"),
    Column("value", lambda one: "(hidden)" if one.is_sensitive else one.value, cell=lambda one: _value(one)),
    Column("source", lambda one: one.source_name, "set by", cell=lambda one: _source(one)),
]


def _value(entry: ConfigEntry) -> object:
    return "(hidden)" if entry.is_sensitive else entry.value


def _source(entry: ConfigEntry) -> str:
    return entry.source_name.removesuffix("_CONFIG").lower().replace("_", " ")


@configs.command()
@_target
@click.option("--all", "every", is_flag=True, help="Show the configs that nobody changed too.")
@output_option
@administered
def describe(cluster: Cluster, resource: ConfigResource, every: bool, output: str) -> None:
    """Show configs: those that were changed, or --all.

    \b
    Example:
      penstock configs describe --topic orders --all
    """
    found = cluster.configs.describe(resource)
    show_rows(
        output,
        [one for one in found if every or one.source not in DEFAULT_SOURCES],
        ENTRIES,
        empty=f"Nothing was changed for {resource}; --all shows what holds.",
    )


@configs.command("set")
@_target
@click.argument("changes", nargs=-1, required=True, metavar="NAME=VALUE...")
@administered
def set_configs(cluster: Cluster, resource: ConfigResource, changes: tuple[str, ...]) -> None:
    """Change configs.

    \b
    Example:
      penstock configs set --topic orders retention.ms=86400000 cleanup.policy=delete,compact
    """
    added = pairs(changes, what="the config")
    cluster.configs.alter(resource, set=added)
    say(f"changed {', '.join(added)} of {resource}")


@configs.command()
@_target
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@administered
def delete(cluster: Cluster, resource: ConfigResource, names: tuple[str, ...]) -> None:
    """Delete configs, so that the default holds again.

    \b
    Example:
      penstock configs delete --topic orders retention.ms
    """
    cluster.configs.alter(resource, delete=names)
    say(f"deleted {', '.join(names)} of {resource}")
