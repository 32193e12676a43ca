"""What the verbs about groups share: completion of group names, and finding groups that must be there."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from penstock.cli.clients import Connection
from penstock.cli.failures import Refused, Unreachable, UserError
from penstock.cli.groups.model import Description, Groups
from penstock.cli.verbs.common_options import COMPLETION_TIMEOUT_S, DEFAULT_BOOTSTRAP


def complete_groups(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The groups that are there; nothing at all when the cluster does not answer at once."""
    from penstock.cli.groups.source import open_groups

    bootstrap = context.params.get("bootstrap_server") or DEFAULT_BOOTSTRAP
    try:
        connection = Connection(bootstrap, timeout_s=COMPLETION_TIMEOUT_S)
        with open_groups(connection, timeout_s=COMPLETION_TIMEOUT_S) as groups:
            names = sorted(one.group_id for one in groups.listing())
    except (Unreachable, Refused, UserError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def found_groups(groups: Groups, names: tuple[str, ...]) -> list[Description]:
    """In the order asked for; UserError, with a near miss, for one that is not there."""
    from penstock.model.errors import ErrorCode

    described = []
    for name, found in groups.describe(names).items():
        if isinstance(found, Description) and found.state != "Dead":
            described.append(found)
            continue
        if isinstance(found, Refused) and found.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise found
        raise UserError(f"there is no group '{name}'.{_hint(groups, name)}")
    return described


def _hint(groups: Groups, name: str) -> str:
    import difflib

    known = [one.group_id for one in groups.listing()]
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f" Did you mean '{near[0]}'?"
    return (
        " Those that are there: penstock groups list" if known else " No group has joined or committed yet."
    )
