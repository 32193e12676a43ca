"""penstock acls: list, add, remove, check."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.verbs.common_options import administered, complete_topics, output_option, yes_option
from penstock.client.errors import UserError

if TYPE_CHECKING:
    from penstock.admin import Cluster
    from penstock.admin.facets.acls import Acl, Answer

F = TypeVar("F", bound=Callable[..., Any])

KINDS = {
    "topic": "Topic",
    "group": "Group",
    "transactional_id": "TransactionalId",
    "delegation_token": "DelegationToken",
    "user": "User",
}
PRODUCER = ("Write", "Describe", "Create")
PRODUCER_ID = ("Write", "Describe")
CONSUMER = ("Read", "Describe")


def resource_options(command: F) -> F:
    """Adds --topic, --group and the others; the command gets one `resources`: pairs of a type and a name."""
    from penstock.cli.verbs.common_options import like

    def with_resources(*args: Any, cluster_itself: bool, **options: Any) -> Any:
        resources = [(shown, options.pop(kind)) for kind, shown in KINDS.items()]
        found = [(shown, name) for shown, name in resources if name is not None]
        if cluster_itself:
            found.append(("Cluster", "kafka-cluster"))
        return command(*args, resources=found, **options)

    decorated = like(with_resources, command)
    decorated = click.option("--cluster", "cluster_itself", is_flag=True, help="The cluster itself.")(
        decorated
    )
    decorated = click.option("--user", metavar="PRINCIPAL", help="A user, as what tokens are made for.")(
        decorated
    )
    decorated = click.option("--delegation-token", metavar="ID", help="A delegation token.")(decorated)
    decorated = click.option("--transactional-id", metavar="ID", help="A transactional id.")(decorated)
    decorated = click.option("--group", metavar="NAME", help="A group.")(decorated)
    return click.option(  # type: ignore[return-value]
        "--topic", metavar="NAME", shell_complete=complete_topics, help="A topic; '*' means all."
    )(decorated)


principal_option = click.option(
    "--principal", metavar="TYPE:NAME", required=True, help="Who: User:ana; 'User:*' is everybody."
)


@click.group()
def acls() -> None:
    """See who may do what; allow it, forbid it, and ask why.

    \b
    Example:
      penstock acls add --principal User:ana --allow Read --topic orders
    """


@acls.command("list")
@click.option("--principal", metavar="TYPE:NAME", help="Only the rules of this one.")
@resource_options
@output_option
@administered
def list_acls(cluster: Cluster, principal: str | None, resources: list[tuple[str, str]], output: str) -> None:
    """List the rules: all, or those that count for a resource.

    \b
    Example:
      penstock acls list --topic orders
    """
    found: dict[Acl, None] = {}
    if not resources:
        found.update(dict.fromkeys(cluster.acls.list(principal=principal)))
    for resource_type, name in resources:
        listed = cluster.acls.list(principal=principal, resource_type=resource_type, name=name)
        found.update(dict.fromkeys(listed))
    _show(output, list(found), empty="There are no rules.")


@acls.command()
@principal_option
@click.option("--allow", multiple=True, metavar="OPERATION", help="What is allowed: Read, Write, All …")
@click.option(
    "--deny", multiple=True, metavar="OPERATION", help="What is forbidden. This wins over all that allows."
)
@click.option("--producer", is_flag=True, help="What a producer needs: Write, Describe, Create.")
@click.option("--consumer", is_flag=True, help="What a consumer needs: Read and Describe; Read on the group.")
@click.option("--prefixed", is_flag=True, help="For all whose names begin so.")
@click.option("--host", metavar="ADDRESS", default="*", show_default=True, help="From where.")
@resource_options
@output_option
@administered
def add(
    cluster: Cluster,
    principal: str,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    producer: bool,
    consumer: bool,
    prefixed: bool,
    host: str,
    resources: list[tuple[str, str]],
    output: str,
) -> None:
    """Allow something to somebody, or forbid it. A rule that is there already stays.

    \b
    Example:
      penstock acls add --principal User:ana --allow Read --topic orders
      penstock acls add --principal User:ana --producer --topic orders --prefixed
      penstock acls add --principal User:ana --consumer --topic orders --group billing
    """
    if not resources:
        raise UserError(
            "say for what: --topic, --group, --transactional-id, --delegation-token, --user or --cluster"
        )
    if not (allow or deny or producer or consumer):
        raise UserError("say what: --allow, --deny, --producer or --consumer")
    made = []
    for resource_type, name in resources:
        is_prefix = prefixed and resource_type != "Cluster"
        allowed = [*allow, *_of_roles(resource_type, producer=producer, consumer=consumer)]
        for operations, is_denied in ((allowed, False), (deny, True)):
            made += cluster.acls.add(
                principal,
                dict.fromkeys(operations),
                resource_type=resource_type,
                name=name,
                is_prefix=is_prefix,
                host=host,
                deny=is_denied,
            )
    _show(output, made, empty="These options ask for no rule on these resources.")


@acls.command()
@click.option("--principal", metavar="TYPE:NAME", help="Only the rules of this one.")
@click.option("--operation", metavar="OPERATION", help="Only rules about this.")
@click.option("--prefixed", is_flag=True, help="The rules for all whose names begin so.")
@click.option("--host", metavar="ADDRESS", help="Only the rules for this host.")
@yes_option
@resource_options
@output_option
@administered
def remove(
    cluster: Cluster,
    principal: str | None,
    operation: str | None,
    prefixed: bool,
    host: str | None,
    yes: bool,
    resources: list[tuple[str, str]],
    output: str,
) -> None:
    """Remove rules: those on the resources named, of the principal, or both. It shows what it has removed.

    \b
    Example:
      penstock acls remove --principal User:ana --topic orders --yes
    """
    from penstock.cli.verbs.output import confirm

    if not resources and principal is None:
        raise UserError("say which rules: of a --principal, or on a --topic, --group and so on")
    of_whom = "" if principal is None else f" of {principal}"
    on_what = ", ".join(f"{resource_type} {name}" for resource_type, name in resources) or "everything"
    confirm(f"Remove the rules{of_whom} on {on_what}?", yes=yes)
    gone = []
    for resource_type, name in resources or [(None, None)]:  # type: ignore[list-item]
        gone += cluster.acls.remove(
            principal=principal,
            operation=operation,
            resource_type=resource_type,
            name=name,
            is_prefix=prefixed,
            host=host,
        )
    _show(output, gone, empty="There was no such rule.")


@acls.command()
@principal_option
@click.option("--operation", metavar="OPERATION", required=True, help="What: Read, Write, Describe …")
@click.option(
    "--host",
    metavar="ADDRESS",
    default="*",
    show_default=True,
    help="From where; *: rules for single hosts do not count.",
)
@resource_options
@output_option
@administered
def check(
    cluster: Cluster,
    principal: str,
    operation: str,
    host: str,
    resources: list[tuple[str, str]],
    output: str,
) -> int:
    """Say whether somebody may do something, and which rule decides. The exit code is 0 for yes and 1 for no.

    Super users and allow.everyone.if.no.acl.found are settings of the brokers. They count if you may see them.

    \b
    Example:
      penstock acls check --principal User:ana --operation Write --topic orders
    """
    from penstock.cli.verbs.output import show

    if len(resources) != 1:
        raise UserError(
            "say for what, one of: --topic, --group, --transactional-id, --delegation-token, --user, --cluster"
        )
    ((resource_type, name),) = resources

    def ask(operation: str) -> Answer:
        return cluster.acls.check(principal, operation, resource_type=resource_type, name=name, host=host)

    answer = ask(operation)
    reason = answer.reason
    if answer.is_allowed and operation.lower() in ("read", "write") and not ask("Describe").is_allowed:
        reason += "; but Describe is denied, and clients need it too"
    document = {
        "allowed": answer.is_allowed,
        "reason": reason,
        "rule": None if answer.acl is None else answer.acl._asdict(),
    }

    def draw() -> None:
        print(f"{'yes' if answer.is_allowed else 'no'}: {reason}")
        if answer.acl is not None:
            _show("table", [answer.acl])

    show(output, lambda: document, draw)
    return 0 if answer.is_allowed else 1


def _of_roles(resource_type: str, *, producer: bool, consumer: bool) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if producer:
        found += {"Topic": PRODUCER, "TransactionalId": PRODUCER_ID}.get(resource_type, ())
    if consumer:
        found += {"Topic": CONSUMER, "Group": ("Read",)}.get(resource_type, ())
    return found


def _show(output: str, rows: list[Acl], *, empty: str = "") -> None:
    from penstock.cli.verbs.output import fields, show_rows

    names = ("principal", "permission", "operation", "resource_type", "resource_name", "pattern", "host")
    show_rows(output, rows, fields(*names), empty=empty)
