"""Options that many verbs share, and completion of topic names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from penstock.cli.clients import Connection
from penstock.cli.failures import Refused, Unreachable, UserError

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_BOOTSTRAP = "localhost:9092"
COMPLETION_TIMEOUT_S = 1.0


def connected(command: F) -> F:
    """Adds -b and --command-config; the command gets one `connection` argument for both.

    What is given to a group counts for its commands: `penstock cluster -b HOST drain 2`.
    """

    def with_connection(*args: Any, bootstrap_server: str, command_config: str | None, **options: Any) -> Any:
        from penstock.cli.property_files import read_properties

        said = given("bootstrap_server")
        path = given("command_config") or command_config
        properties = read_properties(path) if path else None
        connection = Connection(bootstrap_server if said is None else said, properties)
        return command(*args, connection=connection, **options)

    with_connection.__name__ = command.__name__
    with_connection.__doc__ = command.__doc__
    with_connection.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    decorated = click.option(
        "--command-config", metavar="FILE", help="A properties file for the client, with Kafka's names."
    )(with_connection)
    return click.option(  # type: ignore[return-value]
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        envvar="PENSTOCK_BOOTSTRAP",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        help="Where the cluster is.",
    )(decorated)


def given(option: str) -> str | None:
    """What the command line itself says for it, at the command or at a group before it; None when only the environment or
    a default does."""
    context: click.Context | None = click.get_current_context()
    while context is not None:
        if context.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            return str(context.params[option])
        context = context.parent
    return None


output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Tables for people or JSON for programs.",
)


def complete_topics(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The topics that are there; nothing at all when the cluster does not answer at once."""
    from penstock.cli.clients import metadata

    bootstrap = context.params.get("bootstrap_server") or DEFAULT_BOOTSTRAP
    try:
        connection = Connection(bootstrap, timeout_s=COMPLETION_TIMEOUT_S)
        known = metadata(connection.admin(), timeout_s=COMPLETION_TIMEOUT_S)
    except (Unreachable, Refused, UserError):
        return []
    return [CompletionItem(name) for name in sorted(known.topics) if name.startswith(incomplete)]


def pairs(words: tuple[str, ...], *, what: str) -> dict[str, str]:
    """`name=value` words; UserError for one without an equals sign."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UserError(f"{what} '{word}' must be written as name=value")
        found[name] = value
    return found
