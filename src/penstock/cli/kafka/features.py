"""kafka-features: what the cluster can do beyond the versions of its APIs, and at which level it does it."""

from penstock.admin.brokers import DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, features, update_features
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import cluster_client, connection
from penstock.cli.kafka.options import Option, Options, UsageError
from penstock.cli.kafka.subcommands import Subcommand, Subcommands
from penstock.client.errors import UserError

DESCRIBE, DISABLE = "describe", "disable"
KINDS = {"upgrade": UPGRADE, "downgrade": DOWNGRADE, "disable": DOWNGRADE}
MAX_LEVEL = 2**15 - 1
LEVEL = Option(
    "feature", "The feature and the level that it shall have; may be given many times.", "NAME=LEVEL"
)
DRY_RUN = Option("dry-run", "Only tell whether it could be done.")
UNSAFE = Option("unsafe", "Even if that loses metadata.")

SUBCOMMANDS = Subcommands(
    "kafka-features",
    "Shows the features of a cluster and changes their levels.",
    {
        DESCRIBE: Subcommand("Print each feature with its levels (the default).", [], [], "describe"),
        "upgrade": Subcommand(
            "Raise the level of features.",
            [LEVEL, DRY_RUN],
            ["feature"],
            "upgrade --feature group.version=1",
        ),
        "downgrade": Subcommand(
            "Lower the level of features.",
            [LEVEL, DRY_RUN, UNSAFE],
            ["feature"],
            "downgrade --feature group.version=0 --dry-run",
        ),
        DISABLE: Subcommand(
            "Set features to level 0.",
            [Option("feature", "The feature; may be given many times.", "NAME"), DRY_RUN, UNSAFE],
            ["feature"],
            "disable --feature group.version --dry-run",
        ),
    },
    default=DESCRIBE,
    help_code=0,
)
TABLE = SUBCOMMANDS.table


def execute(given: Options) -> int:
    command = SUBCOMMANDS.check(given)
    if command == DESCRIBE:
        return _describe(given)
    levels = _levels(given, command)
    kind = UNSAFE_DOWNGRADE if given.has("unsafe") else KINDS[command]
    is_dry_run = given.has("dry-run")
    with cluster_client(given) as client:
        outcome = update_features(client, levels, kind=kind, validate_only=is_dry_run)
    return _tell(command, levels, outcome, is_dry_run=is_dry_run)


def _describe(given: Options) -> int:
    cluster = connection(given)
    cluster.check()
    found, epoch = features(cluster)
    for one in found:
        print(
            f"Feature: {one.name:<40}  SupportedMinVersion: {one.min_version:<15}  "
            f"SupportedMaxVersion: {one.max_version:<15}  "
            f"FinalizedVersionLevel: {one.level:<15}  Epoch: {'-' if epoch is None else epoch}"
        )
    return 0


def _levels(given: Options, command: str) -> dict[str, int]:
    """The level of each feature that was named."""
    named = given.values("feature")
    if not named:
        raise UsageError(f"You must specify at least one feature to {command}")
    levels: dict[str, int] = {}
    for text in named:
        name, level = (text, 0) if command == DISABLE else _level(text)
        if name in levels:
            raise UserError(f"Feature {name} was specified more than once.")
        levels[name] = level
    return levels


def _level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals:
        raise UserError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        number = int(level)
    except ValueError:
        number = MAX_LEVEL + 1
    if not -MAX_LEVEL <= number <= MAX_LEVEL:
        raise UserError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return name.strip(), number


def _tell(command: str, levels: dict[str, int], outcome: dict[str, str | None], *, is_dry_run: bool) -> int:
    failed = 0
    for name, level in sorted(levels.items()):
        to_level = "" if command == DISABLE else f" to {level}"
        why = outcome[name]
        if why is not None:
            failed += 1
            start = "Can not" if is_dry_run else "Could not"
            print(f"{start} {command} {name}{to_level}. {why}")
        else:
            print(f"{name} {'can be' if is_dry_run else 'was'} {command}d{to_level}.")
    if failed:
        tool.complain(f"{failed} out of {len(levels)} operation(s) failed.")
    return 1 if failed else 0
