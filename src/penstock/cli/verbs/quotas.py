"""penstock quotas: list, set, remove."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.verbs.common_options import administered, output_option, pairs
from penstock.cli.verbs.output import Column, say, show_rows
from penstock.client.errors import UserError

if TYPE_CHECKING:
    from penstock.admin import Cluster

# The longer first: MB ends in B.
_FACTORS = {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "B": 1,
    "%": 1,
}
_NUMBER = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_FACTORS)})?(?:/s)?")


@click.group()
def quotas() -> None:
    """List, set and remove quotas: how much users, client ids and IP addresses may take of each broker.

    \b
    Example:
      penstock quotas set --user ana --client app producer_byte_rate=5MB
    """


def _whose(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option("--user", metavar="NAME", help="Of this user."),
            click.option("--user-default", is_flag=True, help="Of each user without a quota of its own."),
            click.option("--client", metavar="ID", help="Of this client id; with a user, of that user's."),
            click.option(
                "--client-default", is_flag=True, help="Of each client id without a quota of its own."
            ),
            click.option("--ip", metavar="ADDRESS", help="Of this IP address."),
            click.option("--ip-default", is_flag=True, help="Of each address without a quota of its own."),
        )
    ):
        command = option(command)
    return command


def _names(options: dict[str, Any]) -> dict[str, str | None]:
    from penstock.admin.quotas import DEFAULT

    found: dict[str, str | None] = {}
    for option, name in (("user", "user"), ("client", "client_id"), ("ip", "ip")):
        if options[option] is not None and options[f"{option}_default"]:
            raise UserError(f"--{option} and --{option}-default exclude each other")
        found[name] = DEFAULT if options[f"{option}_default"] else options[option]
    return found


@quotas.command("list")
@output_option
@administered
def list_quotas(cluster: Cluster, output: str) -> None:
    """List all quotas, each with whose it is.

    \b
    Example:
      penstock quotas list -o json
    """
    rows = [
        (each, name, value) for each in cluster.quotas.list() for name, value in sorted(each.values.items())
    ]
    show_rows(
        output,
        rows,
        [
            Column("user", lambda row: row[0].user),
            Column("client_id", lambda row: row[0].client_id),
            Column("ip", lambda row: row[0].ip),
            Column("quota", lambda row: row[1]),
            Column("value", lambda row: row[2], cell=lambda row: f"{row[2]:,.15g}"),
        ],
        empty="There are no quotas.",
    )


@quotas.command("set")
@_whose
@click.argument("values", nargs=-1, required=True, metavar="QUOTA=VALUE…")
@administered
def set_quotas(cluster: Cluster, values: tuple[str, ...], **whose: Any) -> None:
    """Set quotas; others stay as they are. They hold at once, and on each broker by itself.

    \b
    producer_byte_rate          bytes per second that may be produced: 5MB, 512KiB
    consumer_byte_rate          bytes per second that may be fetched
    request_percentage          time that requests may take; 100 is one thread
    controller_mutation_rate    partitions per second that may be made and deleted
    connection_creation_rate    new connections per second, of an IP address

    \b
    Example:
      penstock quotas set --user ana --client app producer_byte_rate=5MB
    """
    numbers = {name: _number(name, text) for name, text in pairs(values, what="a quota").items()}
    names = _names(whose)
    cluster.quotas.set(numbers, **names)
    say(f"{_text(names)} may take {', '.join(f'{name}={value:.15g}' for name, value in numbers.items())}")


@quotas.command()
@_whose
@click.argument("quota", nargs=-1)
@administered
def remove(cluster: Cluster, quota: tuple[str, ...], **whose: Any) -> None:
    """Remove quotas; all of the user, client id or address when none is named.

    \b
    Example:
      penstock quotas remove --user ana --client app
    """
    names = _names(whose)
    cluster.quotas.remove(quota, **names)
    say(f"{', '.join(quota) or 'all quotas'} of {_text(names)}: removed")


def _number(name: str, text: str) -> float:
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise UserError(f"{name}={text}: not a number such as 5000000, 5MB, 512KiB or 50")
    return float(found[1]) * _FACTORS.get(found[2], 1)


def _text(names: dict[str, str | None]) -> str:
    words = {"user": "user", "client_id": "client id", "ip": "address"}
    return ", ".join(
        f"each {words[kind]}" if name == "<default>" else f"{words[kind]} {name}"
        for kind, name in names.items()
        if name is not None
    )
