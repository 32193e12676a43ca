"""What a page gets: the console, the cluster in its address, who looks at it, and the one way to change anything."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.admin import Cluster
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.console.access.actions import Action
from penstock.console.access.roles import Role, is_allowed, is_allowed_somewhere
from penstock.console.clusters.snapshot import Snapshot
from penstock.console.words import text

if TYPE_CHECKING:
    from penstock.console.access.audit import Audit
    from penstock.console.access.doors import Access
    from penstock.console.access.masking import Mask
    from penstock.console.history import History
    from penstock.console.settings import ClusterSettings, ConsoleSettings

log = logging.getLogger("penstock.console")
T = TypeVar("T")

CALL_THREADS: Final = 6
"""Questions to one cluster at a time; more wait in a queue."""
MAX_WAITING_CALLS: Final = 200
_OF_RECORDS: Final = (Action.READ_MESSAGES, Action.PRODUCE, Action.EDIT_TOPICS, Action.DELETE_TOPICS)
CALL_TIMEOUT_S: Final = 10.0
"""How long a retriable error of a broker is asked again before it is told."""


class Forbidden(UserError):
    """The visitor's roles do not allow it, or the session has ended."""


class Busy(UserError):
    """Too much is being asked of one cluster already."""


@dataclass(frozen=True, kw_only=True)
class Visitor:
    """Who looks at a page. `name` is empty where the login is off; then the roles are those of an admin."""

    name: str
    roles: tuple[Role, ...]
    language: str = "en"
    session_id: str = field(default="", repr=False)

    def may(self, action: Action, resource: str = "*", cluster: str = "*") -> bool:
        """`resource` is a topic, group, subject or connector; `*` asks about all of them at once."""
        return is_allowed(self.roles, action, resource, cluster)

    def may_somewhere(self, action: Action, cluster: str = "*") -> bool:
        """Whether there may be a resource for which `may` is true: for buttons and menus above a list."""
        return is_allowed_somewhere(self.roles, action, cluster)


class ClusterHandle:
    """One cluster of the settings. `call` is the only way to its brokers that a page may take."""

    def __init__(self, settings: ClusterSettings, history: History, *, look_every_s: float) -> None:
        self.settings = settings
        self.name: str = settings.name
        self.bootstrap: str = settings.bootstrap
        self.properties: dict[str, str] = dict(settings.properties)
        self.registry_url: str | None = settings.registry_url
        self.connect_urls: tuple[str, ...] = settings.connect_urls
        self.sql_url: str | None = settings.sql_url
        self.spark_urls: tuple[str, ...] = settings.spark_urls
        self.ca_file: str | None = settings.ca_file
        """Whom https of those three is trusted by; None: whom this machine trusts."""
        self.admin = Cluster(self.bootstrap, self.properties, timeout_s=CALL_TIMEOUT_S)
        """Safe to share between threads; its calls block."""
        self.snapshot = Snapshot(
            self.name, self.bootstrap, self.properties, history=history, interval_s=look_every_s
        )
        """The last look at all of it. Pages read `snapshot.latest`, which is None until there was a first one."""
        self._threads = ThreadPoolExecutor(CALL_THREADS, thread_name_prefix=f"console-{self.name}")
        self._waiting = 0

    async def call(self, work: Callable[[Cluster], T]) -> T:
        """What `work` returns; it may block, and runs in one of a few threads. What the library raises is raised here."""
        if self._waiting >= MAX_WAITING_CALLS:
            raise Busy(
                f"{self.name} answers too slowly: {self._waiting} questions are waiting; try again soon"
            )
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, self.admin)
        finally:
            self._waiting -= 1

    def has(self, need: str | None) -> bool:
        """Whether it has what a screen needs: "registry", "connect", "sql", or nothing."""
        known = {"registry": self.registry_url, "connect": self.connect_urls, "sql": self.sql_url}
        return need is None or bool(known[need])

    def close(self) -> None:
        """Connections are closed; a call under way ends by itself and nobody waits for it."""
        self.snapshot.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.admin.close()


@dataclass(frozen=True, kw_only=True)
class Console:
    """What all pages share."""

    settings: ConsoleSettings
    clusters: Mapping[str, ClusterHandle]
    history: History
    audit: Audit
    access: Access


@dataclass(frozen=True, kw_only=True)
class PageContext:
    """For one page in one browser."""

    console: Console
    cluster: ClusterHandle
    visitor: Visitor
    path: Mapping[str, str] = field(default_factory=dict)
    """The parts of the address: `path["topic"]` for `/{cluster}/topics/{topic}`."""
    query: Mapping[str, str] = field(default_factory=dict)

    def t(self, key: str, **values: object) -> str:
        """The words for `key` in the visitor's language."""
        return text(self.visitor.language, key, **values)

    def may(self, action: Action, resource: str = "*") -> bool:
        """In the cluster of this page."""
        return self._allows(self.visitor, action, resource)

    def may_somewhere(self, action: Action) -> bool:
        return self.visitor.may_somewhere(action, self.cluster.name)

    def require(self, action: Action, resource: str = "*") -> None:
        """Forbidden unless the visitor may, by roles and session as they are now, not as they were when the page was made. For
        reads and downloads; changes go through `act`."""
        visitor = self.console.access.current(self.visitor)
        if visitor is None:
            raise Forbidden(self.t("common.session_ended"))
        if not self._allows(visitor, action, resource):
            raise Forbidden(
                self.t("common.forbidden", action=self.t(f"action.{action.value}"), resource=resource)
            )

    def _allows(self, visitor: Visitor, action: Action, resource: str) -> bool:
        """The audit log's topic is for who may give rights: others would read there what its page does not show them, or write
        and delete what is told of them."""
        audit, here = self.console.settings.audit, self.cluster.name
        is_audit_log = audit.topic == resource and audit.cluster == here and action in _OF_RECORDS
        return visitor.may(action, resource, here) and (
            not is_audit_log or visitor.may(Action.EDIT_SECURITY, "*", here)
        )

    def mask(self, topic: str) -> Mask | None:
        """What of the topic's records this visitor may not see. None: nothing is hidden."""
        return self.console.access.masking.for_topic(topic, self.visitor.roles)

    async def act(self, action: Action, resource: str, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """The one way to change anything: refuses with Forbidden, does `work`, and writes what was done, or tried, into the audit
        log. `what` says it in plain English for the log: `set retention.ms=1000`. Never a password or a value of a record."""
        try:
            self.require(action, resource)
        except Forbidden:
            self._audit(action, resource, what, "refused", "")
            raise
        try:
            result = await work()
        except (UserError, Refused, Unreachable) as error:
            self._audit(action, resource, what, "failed", str(error))
            raise
        except asyncio.CancelledError:
            self._audit(action, resource, what, "cancelled", "")
            raise
        except Exception as error:
            self._audit(action, resource, what, "failed", type(error).__name__)
            raise
        self._audit(action, resource, what, "done", "")
        return result

    def _audit(self, action: Action, resource: str, what: str, outcome: str, error: str) -> None:
        self.console.audit.tell(
            cluster=self.cluster.name, visitor=self.visitor.name, action=action.value, resource=resource, what=what,
            outcome=outcome, error=error,
        )  # fmt: skip
