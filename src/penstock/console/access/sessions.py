"""Sessions on the server: a browser has a random word in a cookie, and nothing else.

A session ends when it was idle for too long, when it is too old, at the logout, or when too many others were begun. Only a hash
of the word is kept, so that what is in memory opens nothing. A login always begins a new one: a word that somebody else put into
a browser is never worth anything.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

MAX_SESSIONS: Final = 5000
MAX_SESSIONS_OF_ONE: Final = 50
WORD_BYTES: Final = 32


@dataclass(kw_only=True)
class Session:
    id: str
    """The hash; safe to pass around inside the process."""
    name: str
    roles: tuple[str, ...]
    begun_s: float
    used_s: float = field(default=0.0)


class Sessions:
    """`clock` is monotonic, in seconds. One event loop uses it."""

    def __init__(self, clock: Callable[[], float], *, idle_s: float, max_age_s: float) -> None:
        self._clock = clock
        self._idle_s = idle_s
        self._max_age_s = max_age_s
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        """The one that was used longest ago is the first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, name: str, roles: tuple[str, ...]) -> str:
        """The word for the cookie."""
        own = [each for each in self._sessions.values() if each.name == name]
        if len(own) >= MAX_SESSIONS_OF_ONE:
            self.end(own[0].id)
        if len(self._sessions) >= MAX_SESSIONS:
            self._sessions.popitem(last=False)
        word = secrets.token_urlsafe(WORD_BYTES)
        now_s = self._clock()
        session = Session(id=id_of(word), name=name, roles=roles, begun_s=now_s, used_s=now_s)
        self._sessions[session.id] = session
        return word

    def find(self, session_id: str, *, is_use: bool = True) -> Session | None:
        """`is_use` puts off its end; a look by the console itself does not."""
        session = self._sessions.get(session_id)
        if session is None:
            return None
        if self._is_over(session):
            del self._sessions[session_id]
            return None
        if is_use:
            session.used_s = self._clock()
            self._sessions.move_to_end(session_id)
        return session

    def end(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    def sweep(self) -> None:
        for session_id in [one.id for one in self._sessions.values() if self._is_over(one)]:
            del self._sessions[session_id]

    def _is_over(self, session: Session) -> bool:
        now_s = self._clock()
        return now_s - session.used_s >= self._idle_s or now_s - session.begun_s >= self._max_age_s


def id_of(word: str) -> str:
    return hashlib.sha256(word.encode("utf-8", "replace")).hexdigest()
