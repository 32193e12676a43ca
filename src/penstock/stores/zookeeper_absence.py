"""Finds out why no ZooKeeper server accepts an existing session, and logs it each minute.

A server closes the connection of a client that has seen newer changes than the server has, without a reason. All servers of
an ensemble do so after their data was lost or restored from a backup, and then for ever. The command `srvr` asks a server what
it has. Every ZooKeeper answers it, unless it is configured not to.
"""

import logging
from collections.abc import Callable
from typing import Final

from penstock.metadata.session_state import SessionState
from penstock.model.endpoints import bracketed

ASK_AGAIN_S: Final = 10.0
TELL_AGAIN_S: Final = 60.0
NO_ANSWER: Final = "does not answer"

_log = logging.getLogger("penstock.stores")


def lacks_data(address: tuple[str, int], seen_zxid: int, timeout_s: float) -> str:
    """That a server knows less than its client, in words; empty where that is not so, or not known. It waits for the server."""
    from penstock.stores.zookeeper_server import server_status  # which brokers need for nothing else

    host, port = address
    status = server_status(host, port, timeout_s=timeout_s)
    if status is None or status.zxid is None or status.zxid >= seen_zxid:
        return ""
    return f"{bracketed(host)}:{port} is at zxid {status.zxid:#x}, this broker was at {seen_zxid:#x}"


class Absence:
    """What the store and its operator know about a session's trouble."""

    def __init__(self, address: str, now: Callable[[], float]) -> None:
        self._address = address
        self._now = now
        self._tell_at = 0.0
        self.state = SessionState()

    def begin(self) -> None:
        """The connection is lost."""
        self.state = self.state._replace(disconnects=self.state.disconnects + 1)
        self._tell(NO_ANSWER)

    def go_on(self, lacks: str) -> None:
        """All servers were tried in vain; `lacks` says that one has lost what we have seen."""
        trouble = NO_ANSWER
        if lacks:
            trouble = f"has older data than this broker has seen ({lacks})"
        if trouble.partition("(")[0] != self.state.trouble.partition("(")[0] or self._now() >= self._tell_at:
            self._tell(trouble)

    def end(self, trouble: str = "") -> None:
        """A server serves us; or the session has ended, and this is why."""
        if trouble:
            self.state = self.state._replace(expirations=self.state.expirations + 1)
            _log.warning("the session with ZooKeeper at %s has ended", self._address)
        self.state = self.state._replace(trouble=trouble)

    def _tell(self, trouble: str) -> None:
        self._tell_at = self._now() + TELL_AGAIN_S
        self.state = self.state._replace(trouble=trouble)
        if trouble == NO_ANSWER:
            _log.warning("ZooKeeper at %s does not answer", self._address)
        else:
            _log.error(
                "ZooKeeper at %s %s: was it emptied, or restored from a backup? It cannot serve this broker. Stop all brokers, "
                "restore ZooKeeper if you can, start the brokers (docs/how-to/lost-metadata.md)",
                self._address, trouble,
            )  # fmt: skip
