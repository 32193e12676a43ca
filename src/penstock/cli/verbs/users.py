"""penstock users: list, set, remove."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from penstock.cli.verbs.common_options import administered, given, output_option
from penstock.cli.verbs.output import Column, fields, say, show_rows
from penstock.client.errors import UserError

if TYPE_CHECKING:
    from penstock.admin import Cluster
    from penstock.config.layers import BrokerConfig


@click.group()
def users() -> None:
    """List users that log in by SCRAM, make them, change their passwords, remove them.

    \b
    Example:
      penstock users set ana --password-file ana.secret
    """


@users.command("list")
@output_option
@administered
def list_users(cluster: Cluster, output: str) -> None:
    """List the users, each with the mechanisms by which it logs in.

    \b
    Example:
      penstock users list -o json
    """
    show_rows(
        output,
        cluster.users.list(),
        [Column("user", lambda one: one.name), *fields("mechanism", "iterations")],
        empty="There are no users.",
    )


@users.command("set")
@click.argument("name")
@click.option(
    "--password-file",
    type=click.File("r"),
    metavar="FILE",
    help="Where the password is; - is standard input.",
)
@click.option(
    "--mechanism",
    type=click.Choice(["SCRAM-SHA-256", "SCRAM-SHA-512"]),
    default="SCRAM-SHA-512",
    show_default=True,
    help="How the user logs in.",
)
@click.option(
    "--iterations", type=int, default=8192, show_default=True, help="How long guessing a password takes."
)
@click.option(
    "--zookeeper",
    metavar="HOST:PORT",
    help="Write it into the metadata there: no broker is asked, or runs yet.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write it into the data directory of a single broker that does not run.",
)
@click.option(
    "--config",
    metavar="FILE",
    help="The same by the broker's server.properties: what it says of ZooKeeper, or else its log.dirs.",
)
@administered
def set_user(
    cluster: Cluster,
    name: str,
    password_file: TextIO | None,
    mechanism: str,
    iterations: int,
    **metadata: str | Path | None,
) -> None:
    """Make a user, or give it another password. The password is asked for unless a file has it.

    The first user of a cluster that lets nobody in without a login is made with --zookeeper, --data or --config,
    before the brokers start.

    \b
    Example:
      penstock users set ana --password-file ana.secret
      penstock users set admin --config server.properties
    """
    config = _broker_config({name: value for name, value in metadata.items() if value is not None})
    if password_file is not None:
        password = password_file.read().rstrip("\r\n")
    else:
        password = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    if config is not None:
        from penstock.stack.first_users import write_user

        write_user(config, name, password, mechanism=mechanism, iterations=iterations)
    else:
        cluster.users.set(name, password, mechanism=mechanism, iterations=iterations)
    say(f"user {name} logs in by {mechanism}")


def _broker_config(named: dict[str, str | Path]) -> BrokerConfig | None:
    """Where the metadata are, if the command line says it; None: brokers are asked."""
    if not named:
        return None
    from penstock.client.property_files import read_properties
    from penstock.config.loading import load
    from penstock.config.option import ConfigError

    if len(named) > 1 or given("bootstrap_server") is not None:
        words = [f"--{name}" for name in named] + (["-b"] if given("bootstrap_server") is not None else [])
        raise UserError(f"{' and '.join(words)} name two ways to the same thing: use one of them")
    ((name, value),) = named.items()
    if name == "data" and Path(value, "box.json").exists():
        raise UserError(
            f"{value} holds a cluster: penstock users set --command-config {value}/client.properties asks its brokers"
        )
    if name == "data" and not Path(value).is_dir():
        raise UserError(f"there is no {value}: it is made when the broker starts, or by mkdir")
    names = {"zookeeper": "zookeeper.connect", "data": "log.dirs"}
    try:
        config, _ = load(read_properties(str(value)) if name == "config" else {names[name]: str(value)})
    except ConfigError as error:
        raise UserError(f"{value if name == 'config' else '--' + name}: {error}") from None
    return config


@users.command()
@click.argument("name")
@administered
def remove(cluster: Cluster, name: str) -> None:
    """Remove a user. Connections that are open stay open until they log in again.

    \b
    Example:
      penstock users remove ana
    """
    cluster.users.remove(name)
    say(f"user {name} is removed")
