"""The thread that looks at a cluster every few seconds. Pages read `latest` and never ask a broker for a list.

Bounded: it works for at most `SHARE` of the time (a look that takes a second is followed by a pause of nine), one look at a
time. A cluster that does not answer leaves `latest` as it is and says why in `trouble`; it is looked at again after a pause
that grows to `MAX_PAUSE_S`. Brokers that were there once are tried when none of the given addresses answers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.console.clusters.look import Looker
from penstock.console.clusters.model import ClusterView

if TYPE_CHECKING:
    from penstock.console.history import History

log = logging.getLogger("penstock.console")

INTERVAL_S: Final = 5.0
SHARE: Final = 0.1
"""Of the time that may be spent looking."""
MAX_PAUSE_S: Final = 60.0
SOON_S: Final = 0.3
"""After a change: brokers hear of it a little later than the controller."""
REQUEST_TIMEOUT_S: Final = 10.0
CLOSING_TIMEOUT_S: Final = 5.0


class Trouble(NamedTuple):
    """Why the last look failed, and since when none has worked."""

    said: str
    since_s: float


class Snapshot:
    def __init__(
        self,
        name: str,
        bootstrap: str,
        properties: Mapping[str, str] | None = None,
        *,
        history: History | None = None,
        interval_s: float = INTERVAL_S,
    ) -> None:
        """`start` begins; `close` ends. `history` gets the series of each look under the cluster's name."""
        self.name = name
        self.latest: ClusterView | None = None
        """The last look; None until there was one."""
        self.trouble: Trouble | None = None
        """None while looks work."""
        self._bootstrap = bootstrap
        self._properties = dict(properties or {})
        self._history = history
        self._interval_s = interval_s
        self._wake = threading.Event()
        self._is_closed = False
        self._is_changed = False
        self._client: ClusterClient | None = None
        self._looker = Looker()
        self._thread = threading.Thread(target=self._run, name=f"console-look-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def refresh_soon(self) -> None:
        """After a change: the next look is not waited for. May be called from any thread."""
        self._is_changed = True
        self._wake.set()

    def close(self) -> None:
        self._is_closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(CLOSING_TIMEOUT_S)

    def _run(self) -> None:
        failures = 0
        while not self._is_closed:
            began_s = time.monotonic()
            try:
                self.look()
                failures = 0
            except Exception as error:
                failures += 1
                self._failed(error)
            took_s = time.monotonic() - began_s
            pause_s = max(self._interval_s - took_s, took_s * (1 / SHARE - 1))
            if failures:
                pause_s = self._interval_s * min(failures, 3)
            if self._wake.wait(min(pause_s, MAX_PAUSE_S)):
                self._wake.clear()
                if not self._is_closed:
                    time.sleep(SOON_S)
        self._drop_client()

    def look(self) -> ClusterView:
        """Now, in this thread. Not while the thread of `start` runs."""
        if self._client is None:
            self._client = ClusterClient(self._connection(), timeout_s=REQUEST_TIMEOUT_S)
        last = self.latest
        slowness = 1.0 if last is None else max(1.0, last.took_s / (self._interval_s * SHARE))
        is_after_change, self._is_changed = self._is_changed, False
        view = self._looker.look(self._client, slowness=slowness, is_after_change=is_after_change)
        self.latest, self.trouble = view, None
        if self._history is not None:
            self._history.take(self.name, view)
        return view

    def _connection(self) -> Connection:
        last = self.latest
        known = [] if last is None else [f"{one.host}:{one.port}" for one in last.brokers]
        given = [address.strip() for address in self._bootstrap.split(",")]
        return Connection(",".join(dict.fromkeys(given + known)), self._properties)

    def _failed(self, error: Exception) -> None:
        self._drop_client()
        since_s = time.time() if self.trouble is None else self.trouble.since_s
        if self.trouble is None:  # told once, not at each look
            is_expected = isinstance(error, Unreachable | Refused | UserError | OSError)
            log.warning("the cluster %s cannot be looked at: %s", self.name, error, exc_info=not is_expected)
        self.trouble = Trouble(str(error) or type(error).__name__, since_s)

    def _drop_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
