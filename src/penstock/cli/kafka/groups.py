"""kafka-groups: the groups of every kind."""

from penstock.admin.groups.model import Listing
from penstock.admin.groups.requests import open_groups
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.client.errors import Refused
from penstock.model.java_order import in_hash_map_order

COLUMN_WIDTH = 20
TYPES = {"classic": "Classic", "consumer": "Consumer", "share": "Share", "streams": "Streams"}
KINDS = ["consumer", "share", "streams"]

TABLE = OptionTable(
    "kafka-groups",
    "This tool helps to list groups of all types.",
    [
        Option("list", "List the groups."),
        Option("group-type", "Only groups of this type: classic, consumer, share or streams.", "TYPE"),
        Option("protocol", "Only groups of this protocol type.", "PROTOCOL"),
        Option("consumer", "Only groups of consumers, of either protocol, and those that only have offsets."),
        Option("share", "Only share groups."),
        Option("streams", "Only streams groups."),
    ],
    examples=["kafka-groups --bootstrap-server localhost:9092 --list --consumer"],
)


def execute(given: Options) -> int:
    given.require("bootstrap-server")
    if not given.has("list"):
        raise UsageError("Command must include exactly one action: --list.")
    wanted_type = given.value("group-type")
    if wanted_type is not None and wanted_type.lower() not in TYPES:
        raise OptionError("--group-type must be a valid group type.")
    for kind in KINDS:
        given.refuse_with(kind, ["group-type", "protocol", *(other for other in KINDS if other != kind)])
    where = connection(given)
    try:
        with open_groups(where) as groups:
            listed = {one.group_id: one for one in groups.listing()}
    except Refused as error:
        print(f"Error while executing groups command : {error}", flush=True)
        return 1
    _print([listed[name] for name in in_hash_map_order(listed) if _is_wanted(given, listed[name])])
    return 0


def _is_wanted(given: Options, group: Listing) -> bool:
    wanted_type, protocol = given.value("group-type"), given.value("protocol")
    if wanted_type is not None:
        return group.type == TYPES[wanted_type.lower()] and protocol in (None, group.protocol)
    if protocol is not None:
        return group.protocol == protocol
    if given.has("consumer"):
        return group.protocol in ("", "consumer") or group.type == "Consumer"
    for kind in ("share", "streams"):
        if given.has(kind):
            return group.type == TYPES[kind]
    return True


def _print(groups: list[Listing]) -> None:
    rows = [(group.group_id, group.type, group.protocol) for group in groups]
    width = max([COLUMN_WIDTH, *(len(cell) for row in rows for cell in row)])
    print(" ".join(f"{name:<{width}}" for name in ("GROUP", "TYPE", "PROTOCOL")))
    for row in rows:
        print("".join(f"{cell:<{width}} " for cell in row))
