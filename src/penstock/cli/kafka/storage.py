"""kafka-storage: to which broker and cluster log directories belong. Nothing asks a broker."""

from __future__ import annotations

import secrets
import sys
from typing import TYPE_CHECKING

from penstock.cli.kafka.options import Option, Options
from penstock.cli.kafka.subcommands import Subcommand, Subcommands
from penstock.client.errors import UserError
from penstock.inspection.formatting import as_java, format_directories, look_at_directories
from penstock.model.ids import id_text

if TYPE_CHECKING:
    from penstock.config.layers import BrokerConfig

CONFIG = Option("config", "REQUIRED: the server.properties of the broker.", "FILE")
OF_QUORUM = ("standalone", "no-initial-controllers", "initial-controllers")
NOT_HERE = {
    "release-version": "there is no metadata.version here",
    "feature": "features are those of the brokers here",
}

SUBCOMMANDS = Subcommands(
    "kafka-storage",
    "The Kafka storage tool.",
    {
        "info": Subcommand(
            "Get information about the Kafka log directories on this node.",
            [CONFIG],
            ["config"],
            "info --config server.properties",
        ),
        "format": Subcommand(
            "Format the Kafka log directories on this node.",
            [
                CONFIG,
                Option("cluster-id", "REQUIRED: the cluster's id; random-uuid makes one.", "ID"),
                Option("ignore-formatted", "Pass over directories that are formatted already."),
                Option("standalone", "About KRaft's quorum: has no effect here."),
                Option("no-initial-controllers", "About KRaft's quorum: has no effect here."),
                Option("initial-controllers", "About KRaft's quorum: has no effect here.", "LIST"),
                Option(
                    "add-scram",
                    "A user that logs in by SCRAM, such as SCRAM-SHA-512=[name=ana,password=s3cret]; may be repeated.",
                    "MECHANISM=[name=…]",
                ),
                *(Option(name, f"Not supported: {why}.", "VALUE") for name, why in NOT_HERE.items()),
            ],
            ["config", "cluster-id"],
            "format --config server.properties --cluster-id $(kafka-storage random-uuid)",
        ),
        "random-uuid": Subcommand("Print a random UUID.", [], [], "random-uuid"),
    },
    client_options=(),
    aliases={
        "c": "config",
        "t": "cluster-id",
        "g": "ignore-formatted",
        "s": "standalone",
        "N": "no-initial-controllers",
        "I": "initial-controllers",
    },
    help_code=0,
)
TABLE = SUBCOMMANDS.table


def execute(given: Options) -> int:
    command = SUBCOMMANDS.check(given)
    if command == "random-uuid":
        print(_random_id())
        return 0
    config = _broker(given.value("config") or "")
    return _info(config.log_dirs) if command == "info" else _format(given, config)


def _random_id() -> str:
    """One that does not look like an option."""
    while (text := id_text(secrets.token_bytes(16))).startswith("-"):
        pass
    return text


def _broker(path: str) -> BrokerConfig:
    """What the file says."""
    from penstock.broker.serving import StartError
    from penstock.cli.broker import read_properties
    from penstock.config.loading import load
    from penstock.config.option import ConfigError

    try:
        config, reports = load(read_properties(path))
        for report in reports:
            if report.level == "warning":
                print(f"WARN: {report.text}", file=sys.stderr)
        return config
    except (StartError, ConfigError) as error:
        raise UserError(str(error)) from None


def _info(directories: list[str]) -> int:
    formatted = look_at_directories(directories)
    _print_list("Found log director{}:", ("y", "ies"), formatted.found)
    if formatted.metadata:
        print(f"Found metadata: {as_java(formatted.metadata)}\n")
    _print_list("Found problem{}:", ("", "s"), formatted.problems)
    return 1 if formatted.problems else 0


def _print_list(title: str, endings: tuple[str, str], lines: list[str]) -> None:
    if lines:
        print(title.format(endings[len(lines) > 1]), *(f"  {line}" for line in lines), "", sep="\n")


def _format(given: Options, config: BrokerConfig) -> int:
    for name, why in NOT_HERE.items():
        if given.has(name):
            raise UserError(f"--{name} is not supported: {why}")
    from penstock.admin.scram_option import parse_scram

    users = [parse_scram(text) for text in given.values("add-scram")]
    cluster_id = given.value("cluster-id") or ""
    done = 0
    for directory in format_directories(
        config.log_dirs,
        broker_id=config.node_id,
        cluster_id=cluster_id,
        ignore_formatted=given.has("ignore-formatted"),
    ):
        print(f"Formatting data directory {directory} with cluster.id {cluster_id}.")
        done += 1
    if done and users:
        from penstock.stack.first_users import write_users

        write_users(config, users)
    if not done:
        print("All of the log directories are already formatted.")
    return 0
