"""penstock certs: an authority of one's own, and certificates for brokers and clients."""

from __future__ import annotations

import re
from pathlib import Path

import click

from penstock.client.errors import UserError, reason

MAX_DAYS = 3650

directory_option = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default="certs",
    show_default=True,
    metavar="DIR",
    help="Where the authority and all that it signs is kept.",
)


@click.group()
def certs() -> None:
    """Make certificates for a cluster of your own: an authority, brokers, clients.

    \b
    Example:
      penstock certs broker kafka.example.com --host kafka.example.com --host 10.0.0.5
      penstock certs client ana
    """


def _issue(directory: Path, name: str, hosts: tuple[str, ...], days: int) -> tuple[Path, Path]:
    """The files of the certificate and of the authority."""
    from penstock.stack.certificates import Authority

    if not re.fullmatch(r"[\w.@-]+", name) or name == "ca" or name.startswith("."):
        raise UserError(f"'{name}' cannot be a name here: use letters, digits, dots, dashes and @; not 'ca'")
    try:
        authority = Authority(directory)
        return authority.issue(name, hosts=hosts or (name,), days=days).pem(), authority.path
    except OSError as error:
        raise UserError(f"cannot write {error.filename}: {reason(error)}") from None
    except ValueError as error:
        raise UserError(f"the authority in {directory} cannot be used: {error}") from None


days_option = click.option(
    "--days", type=click.IntRange(1, MAX_DAYS), default=365, show_default=True, help="How long it is valid."
)


@certs.command()
@click.argument("name")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="A name or address under which clients reach the broker; may be repeated. NAME unless given.",
)
@days_option
@directory_option
def broker(name: str, hosts: tuple[str, ...], days: int, directory: Path) -> None:
    """Make a broker's certificate. The authority is made, too, where there is none yet.

    Prints the options for the broker. Made again, it replaces the old one: a running broker takes it within seconds.

    \b
    Example:
      penstock certs broker broker-1 --host kafka.example.com --host 10.0.0.5
    """
    own, authority = _issue(directory, name, hosts, days)
    click.echo(f"ssl.keystore.location={own.resolve()}\nssl.truststore.location={authority.resolve()}")


@certs.command()
@click.argument("name")
@days_option
@directory_option
def client(name: str, days: int, directory: Path) -> None:
    """Make a client's certificate, for brokers with ssl.client.auth. Its principal is User:CN=NAME.

    Prints the properties for the client.

    \b
    Example:
      penstock certs client ana > client.properties
    """
    own, authority = _issue(directory, name, (), days)
    click.echo(
        f"security.protocol=SSL\nssl.keystore.location={own.resolve()}\nssl.truststore.location={authority.resolve()}"
    )
