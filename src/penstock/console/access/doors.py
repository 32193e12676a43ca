"""The doors of the console: from a cookie to a visitor, from a name and a password to a session."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from penstock.console.access.attempts import Attempts
from penstock.console.access.masking import Masking
from penstock.console.access.roles import ADMIN, Role
from penstock.console.access.sessions import Sessions, id_of
from penstock.console.settings.model import NONE

if TYPE_CHECKING:
    from penstock.console.context import Visitor
    from penstock.console.settings import ConsoleSettings

log = logging.getLogger("penstock.console")

EVERYBODY: Final = "*"
GROUP: Final = "group:"
"""In front of the name of a group in `roles_of`."""


class Access:
    def __init__(self, settings: ConsoleSettings) -> None:
        self._settings = settings
        self.is_off = settings.login.method == NONE
        self.masking = Masking(settings.masking)
        self.attempts = Attempts()
        self.sessions = Sessions(
            time.monotonic, idle_s=settings.login.idle_minutes * 60, max_age_s=settings.login.max_hours * 3600
        )

    def visitor(self, word: str, language: str) -> Visitor | None:
        """Whose cookie it is. None: a login is needed."""
        from penstock.console.context import Visitor

        if self.is_off:
            return Visitor(name="", roles=(ADMIN,), language=language)
        session = self.sessions.find(id_of(word)) if word else None
        if session is None:
            return None
        return Visitor(
            name=session.name, roles=self.roles(session.roles), language=language, session_id=session.id
        )

    def current(self, visitor: Visitor) -> Visitor | None:
        """The same visitor as of now; None where the session has ended since."""
        if self.is_off or self.sessions.find(visitor.session_id) is not None:
            return visitor
        return None

    def is_alive(self, session_id: str) -> bool:
        """The same for the console's own looks, which keep no session alive."""
        return self.is_off or self.sessions.find(session_id, is_use=False) is not None

    def roles(self, names: Iterable[str]) -> tuple[Role, ...]:
        return tuple(self._settings.roles[name] for name in names if name in self._settings.roles)

    def roles_of(self, name: str, groups: Iterable[str] = ()) -> tuple[str, ...]:
        """Names of roles by the settings: for the name, for its groups, and for everybody who has logged in. A group that has the
        name of a role has that role where the settings say nothing of groups: else the provider's `admin` would be ours."""
        table: Mapping[str, tuple[str, ...]] = self._settings.login.roles_of
        are_roles = not any(each.startswith(GROUP) for each in table)
        found = dict.fromkeys(table.get(EVERYBODY, ()))
        if not name.startswith(GROUP):
            found |= dict.fromkeys(table.get(name, ()))
        for group in groups:
            if group != EVERYBODY:
                found |= dict.fromkeys(table.get(GROUP + group, ()))
                if are_roles and group in self._settings.roles:
                    found[group] = None
        return tuple(role for role in found if role in self._settings.roles)
