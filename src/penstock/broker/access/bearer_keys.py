"""The identity provider's keys, by which access tokens are checked: fetched ahead of time, and again for a key that is new.

A token names its key. One that is known is at hand at once, whatever the provider does. For one that is not known the keys are
fetched once, for all logins that wait for it, and only these wait:

    known                       → the key
    asked for lately            → none: it is remembered for MISSING_S that it was not there, of MAX_MISSING names at most
    fetched less than PAUSE_S ago → none: names that nobody has cause no more fetches than one in that time
    otherwise                   → fetch, and look again

Keys stay in use while new ones cannot be fetched; that is in the log once.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from penstock.credentials.signed_tokens import Key, Keys, NoKeys, fetched_keys
from penstock.runtime.pools import Pool

log = logging.getLogger("penstock.broker.logins")

URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
WAIT_S: Final = 8.0
"""Of a login for keys. A fetch has five seconds, and a name server may take its time before."""
ABANDON_S: Final = 20.0
"""A fetch that takes longer, as a name server hangs, is no longer waited for: the next one may begin."""
PAUSE_S: Final = 5.0
MISSING_S: Final = 60.0
MAX_MISSING: Final = 1000
MAX_KEY_ID: Final = 1000
"""Characters; a longer name is nobody's."""


class BearerKeys:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: Pool,
        url: str,
        *,
        refresh_s: float,
        backoff_s: float,
        max_backoff_s: float,
        fetch: Callable[[], Keys] | None = None,
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._url = url
        self._refresh_s = max(refresh_s, 1.0)
        self._backoff_s = self._first_backoff_s = max(backoff_s, 0.01)
        self._max_backoff_s = max(max_backoff_s, backoff_s)
        self._fetch = fetch or (lambda: fetched_keys(url))
        self._keys: Keys = {}
        self._missing: OrderedDict[str | None, float] = OrderedDict()  # until when it is taken for granted
        self._fetching: asyncio.Future[Keys] | None = None
        self._ended_s = float("-inf")
        """When the last fetch ended."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_failing = False
        self._is_stopped = False

    def start(self) -> None:
        """Keys in a file are read at once: ValueError where they cannot be. A server may come up later than we do."""
        if self._url.startswith("file:"):
            try:
                self._keys = self._fetch()
            except NoKeys as error:
                raise ValueError(f"{URL}: {error}") from None
            self._timer = self._loop.call_later(self._refresh_s, self._begin)
        else:
            self._begin()

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._fetching is not None:
            self._fetching.cancel()

    async def find(self, key_id: str | None) -> Key | None:
        """The key of that name, or the only one where a token names none."""
        if key_id is not None and len(key_id) > MAX_KEY_ID:
            return None
        key = self._keys.get(key_id)
        if key is not None:
            return key
        now_s = self._loop.time()
        if self._missing.get(key_id, now_s) > now_s:
            return None
        if self._fetching is None:
            if self._is_failing or now_s < self._ended_s + PAUSE_S:
                return None  # it is asked again in its time
            self._begin()
        fetching = self._fetching
        assert fetching is not None
        try:
            await asyncio.wait_for(asyncio.shield(fetching), WAIT_S)
        except (NoKeys, TimeoutError):
            return None
        key = self._keys.get(key_id)
        if key is None:
            self._remember_missing(key_id)
        return key

    def _remember_missing(self, key_id: str | None) -> None:
        self._missing[key_id] = self._loop.time() + MISSING_S
        self._missing.move_to_end(key_id)
        if len(self._missing) > MAX_MISSING:
            self._missing.popitem(last=False)

    def _begin(self) -> None:
        if self._is_stopped or self._fetching is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._fetching = self._loop.create_task(self._until_abandoned(self._pool.run(self._fetch)))
        self._fetching.add_done_callback(self._ended)

    async def _until_abandoned(self, fetched: "asyncio.Future[Keys]") -> Keys:
        try:
            return await asyncio.wait_for(fetched, ABANDON_S)
        except TimeoutError:
            raise NoKeys(f"cannot fetch {self._url}: no answer in time") from None

    def _ended(self, fetching: "asyncio.Future[Keys]") -> None:
        self._fetching = None
        self._ended_s = self._loop.time()
        if fetching.cancelled() or self._is_stopped:
            return
        error = fetching.exception()
        if error is None:
            self._keys = fetching.result()
            for key_id in [name for name in self._missing if name in self._keys]:
                del self._missing[key_id]
            if self._is_failing:
                log.info("the keys of %s can be fetched again", self._url)
            self._is_failing = False
            self._backoff_s = self._first_backoff_s
            next_s = self._refresh_s
        else:
            if not self._is_failing:
                log.warning("%s: %s. It is tried again; tokens with other keys are refused", URL, error)
            self._is_failing = True
            next_s = self._backoff_s
            self._backoff_s = min(2 * self._backoff_s, self._max_backoff_s)
        self._timer = self._loop.call_later(next_s, self._begin)
