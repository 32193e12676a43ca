"""The options of kafka-consumer-groups, and which of them go together."""

import sys

from penstock.admin.groups.reset import parse_topic
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.client.errors import Refused, UserError

ACTIONS = ["list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex"]
FORMS = [
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
]
ONLY_WITH = {
    "members": ["describe"],
    "offsets": ["describe"],
    "verbose": ["describe"],
    "state": ["describe", "list"],
    "type": ["list"],
}
MISSING_EXECUTE = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require "
    "either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are scripting "
    "this command and want to keep the current default behavior without prompting."
)

TABLE = OptionTable(
    "kafka-consumer-groups",
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset "
    "consumer group offsets.",
    [
        Option(
            "bootstrap-server",
            "REQUIRED, except with --validate-regex: where to connect: one or more brokers of the cluster.",
            "HOST:PORT[,HOST:PORT…]",
        ),
        Option("list", "Print the groups; with --state or --type as a table."),
        Option("describe", "Print how far a group is in each partition, or its members, or its state."),
        Option("delete", "Delete groups that have no members, with their offsets."),
        Option("delete-offsets", "Delete a group's offsets of the topics given."),
        Option(
            "reset-offsets",
            "Send a group without members to other offsets: by one of --to-earliest, --to-latest, --to-current, "
            "--to-offset, --shift-by, --by-duration, --to-datetime, --from-file, and for --topic or --all-topics. "
            "Nothing is changed without --execute.",
        ),
        Option("validate-regex", "Say whether a regular expression is one in RE2's syntax.", "REGEX"),
        Option("group", "The group; may be given many times, except with --delete-offsets.", "GROUP"),
        Option("all-groups", "Every group of consumers."),
        Option(
            "topic",
            "With --reset-offsets and --delete-offsets: a topic, or some of its partitions as in orders:0,2; may be given "
            "many times.",
            "TOPIC[:N,N…]",
        ),
        Option("all-topics", "With --reset-offsets: every partition that the group has an offset of."),
        Option(
            "offsets",
            "With --describe: each partition with offset, end and lag. This is what is shown anyway.",
        ),
        Option("members", "With --describe: each member; what it has been given with --verbose."),
        Option(
            "state",
            "With --describe: coordinator, assignor, state and number of members. With --list: show the state, and only "
            "groups of these states where some are named.",
            "STATE,…",
            value_is_optional=True,
        ),
        Option(
            "type",
            "With --list: show the type, and only groups of these types (classic, consumer) where some are named.",
            "TYPE,…",
            value_is_optional=True,
        ),
        Option("verbose", "With --describe: leader epochs, member epochs, assignments, group epochs."),
        Option("timeout", "How long a coordinator may take to be ready.", "MS", "30000"),
        Option("dry-run", "With --reset-offsets: only show the new offsets."),
        Option("execute", "With --reset-offsets: commit the new offsets."),
        Option("export", "With --reset-offsets: print CSV, for --from-file."),
        Option("to-earliest", "To the beginning of each partition."),
        Option("to-latest", "To the end of each partition."),
        Option("to-current", "To where the group is; to the end where it has no offset."),
        Option("to-offset", "To this offset, or the nearest there is.", "OFFSET"),
        Option("shift-by", "Forwards, or backwards with a minus sign, from where the group is.", "N"),
        Option("by-duration", "To the first record since this long ago: PT1H, P7D.", "PnDTnHnMnS"),
        Option(
            "to-datetime",
            "To the first record since then; in UTC where no zone is given.",
            "YYYY-MM-DDThh:mm:ss.sss",
        ),
        Option(
            "from-file", "As in a CSV file: topic,partition,offset or group,topic,partition,offset.", "FILE"
        ),
    ],
    examples=[
        "kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group billing",
        "kafka-consumer-groups --bootstrap-server localhost:9092 --reset-offsets --group billing --topic orders "
        "--to-earliest --execute",
    ],
)


def check(given: Options) -> None:
    for name, actions in ONLY_WITH.items():
        if given.has(name) and not any(given.has(action) for action in actions):
            raise OptionError(f"Option(s) [{name}] are unavailable given other options on the command line")
    if not given.has("validate-regex"):
        given.require("bootstrap-server")
    if given.has("describe"):
        _check_describe(given)
    if given.has("delete"):
        _require_groups(given, "delete")
        if given.has("topic"):
            raise UsageError(
                "The consumer does not support topic-specific offset deletion from a consumer group."
            )
    if given.has("delete-offsets") and not (given.has("group") and given.has("topic")):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if given.has("reset-offsets"):
        _check_reset(given)
    given.refuse_with("group", ["all-groups"])
    given.refuse_with("group", ["list"])
    if not given.has("delete-offsets"):
        given.refuse_with("topic", ["list", "describe", "delete"])
    if sum(given.has(action) for action in ACTIONS) != 1:
        names = ", ".join(f"--{action}" for action in ACTIONS)
        raise UsageError(f"Command must include exactly one action: {names}")


def _require_groups(given: Options, action: str) -> None:
    if not given.has("group") and not given.has("all-groups"):
        raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")


def _check_describe(given: Options) -> None:
    _require_groups(given, "describe")
    if sum(given.has(name) for name in ("members", "offsets", "state")) > 1:
        raise UsageError(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if given.values("state"):
        raise UsageError("Option [describe] does not take a value for [state]")


def _check_reset(given: Options) -> None:
    if given.has("dry-run") and given.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not given.has("dry-run") and not given.has("execute"):
        print(MISSING_EXECUTE, file=sys.stderr, flush=True)
    _require_groups(given, "reset-offsets")
    for form in FORMS:
        given.refuse_with(form, [other for other in FORMS if other != form])


def parse_topics(words: list[str]) -> list[tuple[str, list[int] | None]]:
    """`orders` and `orders:0,2`; None stands for all partitions."""
    try:
        return [parse_topic(word) for word in words]
    except UserError as error:
        raise UsageError(str(error)) from None


class CommandFailed(UserError):
    """What Kafka's tool words as `Executing consumer group command failed due to …`."""


def named(error: Refused) -> str:
    return f"{error.exception_name}: {error}"


def print_error(sentence: str) -> None:
    print(f"\nError: {sentence}", flush=True)
