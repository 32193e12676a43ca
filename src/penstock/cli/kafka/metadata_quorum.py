"""kafka-metadata-quorum: the controllers that keep the metadata of a cluster in KRaft mode."""

import time

from penstock.admin.quorum import (
    BROKERS,
    CONTROLLERS,
    UNKNOWN_TIME_MS,
    Quorum,
    QuorumReplica,
    cluster_id,
    describe_quorum,
    remove_controller,
)
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.options import COMMAND_CONFIG, Option, Options, UsageError
from penstock.cli.kafka.subcommands import Subcommand, Subcommands
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused, UserError
from penstock.model.ids import id_from_text

HEADERS = [
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
]
NO_DIRECTORY = "A" * 22
"""Kafka's text of an id of zeros."""

SUBCOMMANDS = Subcommands(
    "kafka-metadata-quorum",
    "This tool describes kraft metadata quorum status. Clusters of Penstock have no such quorum.",
    {
        "describe": Subcommand(
            "Describe the metadata quorum info.",
            [
                Option("status", "A short summary."),
                Option("replication", "How far each controller and each broker is."),
                Option("human-readable", "With --replication: times as how long ago."),
            ],
            [],
            "describe --status",
        ),
        "remove-controller": Subcommand(
            "Remove a controller from the quorum.",
            [
                Option("controller-id", "The id of the controller to remove.", "N"),
                Option("controller-directory-id", "The id of its directory.", "ID"),
                Option("dry-run", "Only tell what would be done."),
            ],
            ["controller-id", "controller-directory-id"],
            "remove-controller --controller-id 3 --controller-directory-id JEXY6aqzQY-32P5TStzaFg",
        ),
    },
    client_options=(
        Option("bootstrap-server", "One or more brokers of the cluster.", "HOST:PORT[,HOST:PORT…]"),
        Option("bootstrap-controller", "One or more controllers, instead.", "HOST:PORT[,HOST:PORT…]"),
        COMMAND_CONFIG,
    ),
    aliases={"i": "controller-id", "d": "controller-directory-id"},
    help_code=0,
)
TABLE = SUBCOMMANDS.table


def execute(given: Options) -> int:
    command = SUBCOMMANDS.check(given)
    if given.has("bootstrap-server") == given.has("bootstrap-controller"):
        raise UsageError("one of the arguments --bootstrap-server --bootstrap-controller is required")
    if command == "describe":
        _check_describe(given)
        with _client(given) as client:
            quorum = describe_quorum(client)
            if given.has("status"):
                endpoints = BROKERS if given.has("bootstrap-server") else CONTROLLERS
                _print_status(cluster_id(client, endpoints=endpoints), quorum)
            else:
                _print_replication(quorum, is_human=given.has("human-readable"))
        return 0
    return _remove(given)


def _client(given: Options) -> ClusterClient:
    address = given.value("bootstrap-server") or given.value("bootstrap-controller") or ""
    return ClusterClient(Connection(address, client_properties(given)))


def _check_describe(given: Options) -> None:
    if given.has("status") and given.has("replication"):
        raise UserError("Only one of --status or --replication should be specified with describe sub-command")
    if given.has("human-readable") and not given.has("replication"):
        raise UserError("The option --human-readable is only supported along with --replication")
    if not given.has("status") and not given.has("replication"):
        raise UserError("One of --status or --replication must be specified with describe sub-command")


def _print_status(cluster: str, quorum: Quorum) -> None:
    leader, last = quorum.leader, quorum.last_voter
    lag_ms = UNKNOWN_TIME_MS
    if UNKNOWN_TIME_MS not in (leader.last_caught_up_ms, last.last_caught_up_ms):
        lag_ms = leader.last_caught_up_ms - last.last_caught_up_ms
    values = {
        "ClusterId": cluster,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - last.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": f"[{', '.join(map(_node, quorum.voters))}]",
        "CurrentObservers": f"[{', '.join(map(_node, quorum.observers))}]",
    }
    for name, value in values.items():
        print(f"{name + ':':<23} {value}")


def _node(replica: QuorumReplica) -> str:
    text = f'{{"id": {replica.node_id}'
    if replica.directory_id is not None:
        text += f', "directoryId": "{replica.directory_id}"'
    if replica.endpoints:
        endpoints = ", ".join(f'"{one}"' for one in replica.endpoints)
        text += f', "endpoints": [{endpoints}]'
    return text + "}"


def _print_replication(quorum: Quorum, *, is_human: bool) -> None:
    leader, now_ms = quorum.leader, round(time.time() * 1000)
    followers = [voter for voter in quorum.voters if voter is not leader]
    listed = [(leader, "Leader"), *((one, "Follower") for one in followers)]
    listed += [(one, "Observer") for one in quorum.observers]

    def shown(at_ms: int) -> str:
        return f"{now_ms - at_ms} ms ago" if is_human and at_ms != UNKNOWN_TIME_MS else str(at_ms)

    rows = [
        [
            str(one.node_id),
            one.directory_id or NO_DIRECTORY,
            str(one.log_end_offset),
            str(leader.log_end_offset - one.log_end_offset),
            shown(one.last_fetch_ms),
            shown(one.last_caught_up_ms),
            status,
        ]
        for one, status in listed
    ]
    tool.print_table(HEADERS, rows)


def _remove(given: Options) -> int:
    controller_id = given.required_integer("controller-id")
    text = given.value("controller-directory-id") or ""
    if controller_id < 0:
        raise UserError(f"Invalid negative --controller-id: {controller_id}")
    try:
        directory_id = id_from_text(text)
    except ValueError:
        raise UserError(
            f"Failed to parse --controller-directory-id: Input string `{text}` decoded as {len(text) * 6 // 8} bytes, "
            "which is not equal to the expected 16 bytes of a base64-encoded UUID"
        ) from None
    what = f"KRaft controller {controller_id} with directory id {text}"
    if given.has("dry-run"):
        print(f"DRY RUN of removing  {what}")
        return 0
    with _client(given) as client:
        try:
            remove_controller(client, controller_id, directory_id)
        except Refused as error:
            tool.complain(f"{error.exception_name}: {error}")
            return 1
    print(f"Removed {what}")
    return 0
