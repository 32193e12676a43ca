"""The options of kafka-reassign-partitions, and which of them go together."""

from penstock.cli.kafka.address import ZOOKEEPER, is_addressed
from penstock.cli.kafka.options import Option, Options, OptionTable, UsageError
from penstock.client.errors import UserError

# action → (what it needs, what else it may be given)
ACTIONS: dict[str, tuple[list[str], list[str]]] = {
    "generate": (["topics-to-move-json-file", "broker-list"], ["disable-rack-aware"]),
    "execute": (
        ["reassignment-json-file"],
        [
            "additional",
            "throttle",
            "replica-alter-log-dirs-throttle",
            "timeout",
            "disallow-replication-factor-change",
        ],
    ),
    "verify": (["reassignment-json-file"], ["preserve-throttles"]),
    "cancel": (["reassignment-json-file"], ["preserve-throttles", "timeout"]),
    "list": ([], []),
}
TABLE = OptionTable(
    "kafka-reassign-partitions",
    "This tool helps to move topic partitions between replicas.",
    [
        Option("generate", "Propose where the partitions of some topics could be; nothing is changed by it."),
        Option("execute", "Start the reassignment that --reassignment-json-file says."),
        Option(
            "verify",
            "Tell how far the reassignment is. When nothing moves any more, throttles are taken away.",
        ),
        Option("cancel", "End the reassignments of the file that are under way, and go back."),
        Option("list", "List all reassignments that are under way."),
        Option(
            "reassignment-json-file",
            "Which brokers shall keep each partition, the preferred leader first:\n"
            '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}\n'
            'A partition may have "log_dirs", one path or "any" for each replica.',
            "FILE",
        ),
        Option(
            "topics-to-move-json-file",
            'With --generate: the topics: {"version": 1, "topics": [{"topic": "orders"}]}',
            "FILE",
        ),
        Option("broker-list", "With --generate: the brokers that may be used.", "ID,ID,…"),
        Option("disable-rack-aware", "With --generate: do not look at racks."),
        Option(
            "throttle",
            "With --execute: brokers send each other at most so much for it (bytes per second).",
            "N",
            "-1",
        ),
        Option(
            "replica-alter-log-dirs-throttle",
            "With --execute: at most so much is moved between directories of a broker (bytes per second).",
            "N",
            "-1",
        ),
        Option("timeout", "How many ms to wait until moves between directories have begun.", "N", "10000"),
        Option(
            "additional",
            "With --execute: other reassignments may be under way; also changes the throttle of this one.",
        ),
        Option(
            "disallow-replication-factor-change",
            "With --execute: refuse a reassignment that would change how many replicas a partition has.",
        ),
        Option("preserve-throttles", "With --verify and --cancel: leave throttles as they are."),
        Option("bootstrap-controller", "Not in use here.", "HOST:PORT", value_is_optional=True, old=True),
        ZOOKEEPER,
    ],
    examples=[
        "kafka-reassign-partitions --bootstrap-server localhost:9092 --generate \\",
        "    --topics-to-move-json-file topics.json --broker-list 1,2,3",
        "kafka-reassign-partitions --bootstrap-server localhost:9092 --execute --reassignment-json-file move.json",
        "kafka-reassign-partitions --bootstrap-server localhost:9092 --verify --reassignment-json-file move.json",
    ],
)


def checked_action(given: Options) -> str:
    """The one action that is asked for; UsageError when the others do not fit it."""
    actions = [action for action in ACTIONS if given.has(action)]
    if len(actions) != 1:
        raise UsageError(
            f"Command must include exactly one action: {', '.join(f'--{name}' for name in ACTIONS)}"
        )
    (action,) = actions
    if given.has("bootstrap-controller"):
        raise UserError("--bootstrap-controller is not in use here: use --bootstrap-server")
    if not is_addressed(given):
        raise UsageError("Please specify either --bootstrap-server or --bootstrap-controller")
    needed, permitted = ACTIONS[action]
    given.require(*needed)
    everywhere = ["bootstrap-server", "command-config", "zookeeper", "help", "version", action]
    for option in given.table.options:
        if given.has(option.name) and option.name not in [*everywhere, *needed, *permitted]:
            raise UsageError(f'Option "[{option.name}]" can\'t be used with action "[{action}]"')
    return action
