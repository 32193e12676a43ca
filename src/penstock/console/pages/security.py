"""Security: users that log in by SCRAM, access rules, who may do something and why, quotas."""

from __future__ import annotations

from typing import Final

from penstock.console.access.actions import Action
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.tabbed import Tab, tabbed
from penstock.console.pages.screens import Screen
from penstock.console.pages.security_acls import Acls
from penstock.console.pages.security_quotas import Quotas
from penstock.console.pages.security_users import Users
from penstock.console.pages.security_who import Who

TABS: Final = ("users", "acls", "who", "quotas")


async def build(context: PageContext) -> None:
    """Only for those who may see all of the cluster: a rule tells names of topics and of people."""
    context.require(Action.VIEW)
    t = context.t
    with layout.heading(t("security.title"), t("security.subtitle")):
        pass
    chosen = context.query.get("tab", "")
    draws = {
        "users": Users(context).draw,
        "acls": Acls(context).draw,
        "who": Who(context).draw,
        "quotas": Quotas(context).draw,
    }
    tabs = [Tab(name, t(f"security.tab_{name}"), draws[name]) for name in TABS]
    tabbed(tabs, shown=chosen if chosen in TABS else TABS[0], on_turn=lambda name: None)


SCREENS: Final = (Screen("security", "/{cluster}/security", "security.title", "shield", build),)
