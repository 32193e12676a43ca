"""penstock console: pages over clusters, in a browser."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from penstock.cli.http_services import extra, log_format, run
from penstock.cli.verbs.common_options import given as said
from penstock.client.errors import UserError
from penstock.client.property_files import parse_pairs

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
SALT_BYTES = 16


@click.command()
@log_format
@click.option("--config", metavar="FILE", help="console.yaml: clusters, login, roles, masking, audit log.")
@click.option(
    "--command-config",
    metavar="FILE",
    help="A properties file for the clients, with Kafka's names, such as those of a login.",
)
@click.option("-b", "--bootstrap-server", metavar="HOST:PORT", envvar="PENSTOCK_BOOTSTRAP", show_envvar=True,
              help="Where the cluster is.  [default: localhost:9092]")  # fmt: skip
@click.option(
    "--name", metavar="NAME", default="local", show_default=True, help="What the cluster is called."
)
@click.option("--schema-registry-url", metavar="URL", help="Where its schema registry is.")
@click.option("--connect-url", "connect_urls", metavar="URL", multiple=True,
              help="Where Connect is. May be given several times.")  # fmt: skip
@click.option("--sql-url", metavar="URL", help="Where its SQL server is.")
@click.option("--spark-url", "spark_urls", metavar="URL", multiple=True,
              help="Metrics of a Spark driver (show_progress). May be given several times.")  # fmt: skip
@click.option("--data", metavar="DIR", help="Where the history of the charts is kept; without it: in memory.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Where it listens; 0 is any free port.  [default: 8000]"
)
@click.option("--host", metavar="HOST", help="The address on which it listens.  [default: 127.0.0.1]")
@click.option("--no-login", is_flag=True,
              help="Everybody who reaches it is an admin. Only for an address of this machine, such as 127.0.0.1.")  # fmt: skip
@click.option("--hash-password", is_flag=True,
              help="Ask for a password, print what console.yaml takes for it, and end.")  # fmt: skip
@click.option(
    "--set", "pairs", metavar="NAME=VALUE", multiple=True,
    help="A property of the web server, such as ssl.keystore.location. May be given several times.",
)  # fmt: skip
def console(
    config: str | None,
    port: int | None,
    host: str | None,
    no_login: bool,
    hash_password: bool,
    pairs: tuple[str, ...],
    **cluster: Any,
) -> int:
    """Start the console: clusters, topics, messages, groups and more in a browser.

    For Penstock and for Apache Kafka. Who opens it logs in: as `admin` with a password that is printed at the start, or as
    console.yaml says.

    \b
    Example:
      penstock console --bootstrap-server localhost:9092 --port 8000
      penstock console --config console.yaml --host 0.0.0.0
      penstock console --bootstrap-server localhost:9092 --no-login
    """
    with extra("console"):
        import penstock.console.pages  # noqa: F401 -- which are made of NiceGUI
        from penstock.console.service import Service
        from penstock.console.settings.reading import one_cluster, read_settings, without_login
        from penstock.model.endpoints import Address
        from penstock.web.options import Listen, load
    if hash_password:
        return _hash()
    if config:
        for option in ("bootstrap_server", "name", "command_config", "schema_registry_url", "connect_urls", "sql_url",
                       "spark_urls", "data"):  # fmt: skip
            if said(option):
                raise UserError(
                    f"--config says it all: leave out --{option.removesuffix('s').replace('_', '-')}"
                )
        read = read_settings(config)
        settings, web = read.settings, dict(read.web)
    else:
        settings, web = one_cluster(**cluster), {}
    if no_login:
        settings = without_login(settings)
    web |= parse_pairs(list(pairs))
    if host is not None or port is not None:
        web.pop("listeners", None)
    address = Address(host or DEFAULT_HOST, DEFAULT_PORT if port is None else port)
    scheme = "https" if web.get("ssl.keystore.location") else "http"
    loaded = load(web, default_listener=Listen(scheme, address))
    service = Service(settings, tell=click.echo)
    service.check_listeners(loaded.web.listeners)
    return run(service.described, loaded.web, warnings=loaded.warnings)


def _hash() -> int:
    from penstock.web.users_file import hashed

    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UserError("no password was given")
    click.echo(hashed(password, salt=os.urandom(SALT_BYTES)))
    return 0
