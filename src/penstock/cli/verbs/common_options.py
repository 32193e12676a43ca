"""Options that many verbs share, and completion of topic names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from penstock.client.clients import Connection
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.model.errors import ErrorCode
from penstock.stack.stack import DEFAULT_DATA

if TYPE_CHECKING:
    from penstock.admin import Cluster

F = TypeVar("F", bound=Callable[..., Any])
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

DEFAULT_BOOTSTRAP = "localhost:9092"
COMPLETION_TIMEOUT_S = 1.0
NOT_ALLOWED = frozenset(code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED"))
COMMAND_CONFIG_HELP = (
    "A properties file for the client, with Kafka's names; without -b its bootstrap.servers count. With neither, a cluster "
    f"that penstock up --secure keeps in {DEFAULT_DATA} is entered as its admin."
)


def connected(command: F) -> F:
    """Adds -b and --command-config; the command gets one `connection` argument for both.

    What is given to a group counts for its commands: `penstock cluster -b HOST drain 2`.
    """

    def with_connection(*args: Any, bootstrap_server: str, command_config: str | None, **options: Any) -> Any:
        said = given("bootstrap_server")
        path = given("command_config") or command_config
        connection = _connection(said, bootstrap_server, path)
        try:
            return command(*args, connection=connection, **options)
        except Refused as error:
            raise (with_way_out(error, connection) if error.code in NOT_ALLOWED else error) from None

    decorated = click.option("--command-config", metavar="FILE", help=COMMAND_CONFIG_HELP)(
        like(with_connection, command)
    )
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


def with_way_out(error: Refused, connection: Connection) -> Refused:
    """What to do where access rules are against it."""
    login = None if connection.security is None else connection.security.login
    of_whom = "this login" if login is None else f"User:{login.username}"
    return Refused(
        f"{str(error).rstrip('.')}. The brokers' logs name the operation that {of_whom} lacks; "
        "who administers the cluster allows it with: penstock acls add",
        code=error.code,
        exception_name=error.exception_name,
    )


def _connection(said: str | None, bootstrap: str, path: str | None) -> Connection:
    """`said` is what the command line says, `bootstrap` what it or the environment or a default says."""
    from penstock.client.property_files import read_properties

    if path:
        properties = read_properties(path)
        named = properties.get("bootstrap.servers") if said is None else None
        return Connection(named or said or bootstrap, properties)
    if bootstrap == DEFAULT_BOOTSTRAP and said is None and (own := _own_cluster()) is not None:
        return own
    return Connection(bootstrap if said is None else said)


def _own_cluster() -> Connection | None:
    """To the cluster in the default directory, where there is one that asks for a login: its admin's is at hand."""
    if not Path(DEFAULT_DATA).is_dir():
        return None
    from penstock.stack.brokers import connection_to
    from penstock.stack.stack_file import read_stack

    try:
        stack = read_stack(Path(DEFAULT_DATA))
    except UserError:  # `status` and `up` tell of it; who asks another cluster need not care
        return None
    return connection_to(stack) if stack is not None and stack.is_secure else None


def administered(command: F) -> F:
    """The same for commands that administer: they get one `cluster` argument, which is closed when they end."""

    def with_cluster(*args: Any, connection: Connection, **options: Any) -> Any:
        from penstock.admin import Cluster

        with Cluster.over(connection) as cluster:
            return command(*args, cluster=cluster, **options)

    return connected(like(with_cluster, command))  # type: ignore[return-value]


def like(decorated: Callable[..., Any], command: Callable[..., Any]) -> Callable[..., Any]:
    """With the name, the help and the options of the command."""
    decorated.__name__ = command.__name__
    decorated.__doc__ = command.__doc__
    decorated.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    return decorated


def given(option: str) -> str | None:
    """What the command line itself says for it, at the command or at a group before it; None when only the environment or
    a default does."""
    context: click.Context | None = click.get_current_context()
    while context is not None:
        if context.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            return str(context.params[option])
        context = context.parent
    return None


def output_choice(*kinds: str, help: str) -> Callable[[F], F]:
    """The first is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(kinds), default=kinds[0], show_default=True, help=help
    )


output_option = output_choice("table", "json", help="Tables for people or JSON for programs.")


yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def completion(names: Callable[[Cluster], Iterable[str]]) -> Complete:
    """Completes a word by what the cluster has; nothing at all when it does not answer at once."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from penstock.admin import Cluster

        bootstrap = context.params.get("bootstrap_server") or DEFAULT_BOOTSTRAP
        connection = Connection(bootstrap, timeout_s=COMPLETION_TIMEOUT_S)
        try:
            with Cluster.over(connection, timeout_s=COMPLETION_TIMEOUT_S) as cluster:
                known = sorted(names(cluster))
        except (Unreachable, Refused, UserError):
            return []
        return [CompletionItem(name) for name in known if name.startswith(incomplete)]

    return complete


complete_topics = completion(lambda cluster: (one.name for one in cluster.topics.list(internal=True)))


def pairs(words: tuple[str, ...], *, what: str) -> dict[str, str]:
    """`name=value` words; UserError for one without an equals sign."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UserError(f"{what} '{word}' must be written as name=value")
        found[name] = value
    return found
