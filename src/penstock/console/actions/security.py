"""Changes to users, access rules and quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from penstock.admin.facets.acls import Acl
from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.context import PageContext


class AclWish(NamedTuple):
    """Rules that are to be made: one for each operation."""

    principal: str
    operations: tuple[str, ...]
    resource_type: str
    name: str
    is_prefix: bool = False
    host: str = "*"
    deny: bool = False


class QuotaOwner(NamedTuple):
    """Whose a quota is; `Quotas.DEFAULT` stands for all without one of their own."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def __str__(self) -> str:
        parts = (("user", self.user), ("client id", self.client_id), ("address", self.ip))
        return ", ".join(f"{kind} {name}" for kind, name in parts if name is not None)


async def set_password(context: PageContext, name: str, password: str, *, mechanism: str) -> None:
    """Makes the user, or gives it another password."""
    if not name:
        raise UserError("the user needs a name")
    await context.act(
        Action.EDIT_SECURITY, f"User:{name}", f"set the password ({mechanism})",
        lambda: context.cluster.call(lambda admin: admin.users.set(name, password, mechanism=mechanism)),
    )  # fmt: skip


async def remove_user(context: PageContext, name: str) -> None:
    await context.act(
        Action.EDIT_SECURITY, f"User:{name}", "remove the user",
        lambda: context.cluster.call(lambda admin: admin.users.remove(name)),
    )  # fmt: skip


async def add_acls(context: PageContext, wish: AclWish) -> list[Acl]:
    """The rules; those that were there already stay."""
    if not wish.operations:
        raise UserError("say at least one operation")
    verb = "deny" if wish.deny else "allow"
    pattern = "names that begin with " if wish.is_prefix else ""
    what = f"{verb} {wish.principal} {', '.join(wish.operations)} on {wish.resource_type} {pattern}{wish.name} from {wish.host}"
    return await context.act(
        Action.EDIT_SECURITY, wish.principal, what,
        lambda: context.cluster.call(
            lambda admin: admin.acls.add(
                wish.principal, wish.operations, resource_type=wish.resource_type, name=wish.name,
                is_prefix=wish.is_prefix, host=wish.host, deny=wish.deny,
            )
        ),
    )  # fmt: skip


async def remove_acls(context: PageContext, acls: Sequence[Acl]) -> int:
    """How many are gone. Each exactly as it is."""
    removed = 0
    for acl in acls:
        rule = f"{acl.permission} {acl.operation} on {acl.resource_type} {acl.pattern} {acl.resource_name}"
        removed += await context.act(
            Action.EDIT_SECURITY, acl.principal, f"remove the rule: {rule}", partial(_remove, context, acl)
        )
    return removed


async def _remove(context: PageContext, acl: Acl) -> int:
    found = await context.cluster.call(
        lambda admin: admin.acls.remove(
            principal=acl.principal, operation=acl.operation, resource_type=acl.resource_type,
            name=acl.resource_name, is_prefix=acl.pattern == "Prefixed", host=acl.host, deny=acl.permission == "Deny",
        )
    )  # fmt: skip
    return len(found)


async def set_quotas(context: PageContext, owner: QuotaOwner, values: Mapping[str, float]) -> None:
    told = ", ".join(f"{name}={value:g}" for name, value in values.items())
    await context.act(
        Action.EDIT_SECURITY, str(owner), f"set quotas {told}",
        lambda: context.cluster.call(
            lambda admin: admin.quotas.set(values, user=owner.user, client_id=owner.client_id, ip=owner.ip)
        ),
    )  # fmt: skip


async def remove_quotas(context: PageContext, owner: QuotaOwner, names: Sequence[str] = ()) -> None:
    """Without names all of them."""
    await context.act(
        Action.EDIT_SECURITY, str(owner), f"remove quotas {', '.join(names) or '(all)'}",
        lambda: context.cluster.call(
            lambda admin: admin.quotas.remove(names, user=owner.user, client_id=owner.client_id, ip=owner.ip)
        ),
    )  # fmt: skip
