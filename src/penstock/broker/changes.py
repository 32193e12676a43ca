"""The one way in which metadata changes: decide, write, remember, act; one change at a time.

A decision is made from the image as it is under the lock and written to the tree as one `multi`, or as several that each
leave the tree in order. Then each change is prepared (logs are opened), announced to the other brokers, applied to the
image, and acted upon (logs removed, options replaced). A failed write changes nothing. After it there is no way back: a disk
that fails then fails the request, but the image follows the tree.

In a cluster each write checks that we are still the controller. When nobody knows whether a write was made, or when the tree is
not what the image says, the image is read again before the next decision.
"""

import logging
from asyncio import CancelledError, Lock, timeout
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from penstock.controller.decision import Decision, chunks
from penstock.metadata import znodes
from penstock.metadata.image import Change, ClusterImage
from penstock.metadata.load import Controllership
from penstock.metadata.tree import (
    BadVersion,
    Check,
    MetadataTree,
    SessionLost,
    StoreUnavailable,
    TreeError,
    TreeOp,
)
from penstock.model.errors import ApiError, ErrorCode

log = logging.getLogger("penstock.broker")

Result = TypeVar("Result")

MAX_OPS: Final = 2000
MAX_BYTES: Final = 700_000
"""Of one `multi`: ZooKeeper takes no request above a megabyte."""
ATTEMPTS: Final = 3
DEFAULT_PATIENCE_MS: Final = 30_000
"""Of clients that do not say how long they wait."""
PATIENCE_SHARE: Final = 0.8
"""Of a client's patience: the answer has to reach it."""
LEAST_PATIENCE_SECONDS: Final = 1.0


class Cluster(Protocol):
    """What the controller adds to a change; on a single node there is nobody else to consider."""

    async def reload(self) -> None:
        """Read the image again."""

    def announce(self, change: Change) -> None:
        """Have the brokers told; called just before the image changes."""

    def replaced(self) -> None:
        """Another broker is the controller by now."""


class Changes:
    def __init__(
        self,
        image: ClusterImage,
        tree: MetadataTree,
        prepare: Callable[[Change], Awaitable[None]],
        act: Callable[[Change], None],
    ) -> None:
        self._image = image
        self._tree = tree
        self._prepare = prepare
        self._act = act
        self._lock = Lock()
        self._cluster: Cluster | None = None
        self._fence: list[TreeOp] = []
        self._is_unsure = False
        self.is_allowed = True
        """In a cluster only the controller may change anything."""

    def control(self, cluster: Cluster, won: Controllership) -> None:
        self._cluster = cluster
        self._fence = [Check(znodes.CONTROLLER_EPOCH, won.epoch_version)]
        self._is_unsure = False
        self.is_allowed = True

    def resign(self) -> None:
        self.is_allowed = False

    async def make_for_client(
        self, decide: Callable[[], Decision[Result]], patience_ms: int = DEFAULT_PATIENCE_MS
    ) -> list[Result]:
        """As `make`, with an answer while the client still waits for it, also when the tree does not answer or others who wait
        for that are before us."""
        if self._cluster is None:
            # A tree of our own: it answers, and what was begun must not be left halfway.
            return await self.make(decide)
        try:
            async with timeout(max(PATIENCE_SHARE * patience_ms / 1000, LEAST_PATIENCE_SECONDS)):
                return await self.make(decide)
        except TimeoutError:
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT,
                "the metadata store has not answered in time; "
                "whether the change was made is not known: look before you try again",
            ) from None

    async def make(self, decide: Callable[[], Decision[Result]]) -> list[Result]:
        """What the decision answers, once it is in the tree and in force."""
        async with self._lock:
            for attempt in range(ATTEMPTS):
                try:
                    return await self._make(decide)
                except CancelledError:
                    self._is_unsure = True
                    raise
                except (StoreUnavailable, SessionLost) as error:
                    self._is_unsure = True
                    raise ApiError(ErrorCode.REQUEST_TIMED_OUT, _explanation(error)) from error
                except TreeError as error:
                    if self._cluster is None:
                        raise
                    if isinstance(error, BadVersion) and error.path == znodes.CONTROLLER_EPOCH:
                        self._cluster.replaced()
                        break
                    log.warning("the metadata tree is not as expected (%s): reading it again", error)
                    self._is_unsure = True
                    if attempt == ATTEMPTS - 1:
                        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
            raise ApiError(ErrorCode.NOT_CONTROLLER)

    async def _make(self, decide: Callable[[], Decision[Result]]) -> list[Result]:
        if not self.is_allowed:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        cluster = self._cluster
        if self._is_unsure and cluster is not None:
            # A write, if one of nothing: what is read after it is not older, whichever of the store's servers we read from.
            await self._tree.multi(self._fence)
            await cluster.reload()
            self._is_unsure = False
        decision = decide()
        failed: OSError | None = None
        for ops, changes in chunks(decision, max_ops=MAX_OPS, max_bytes=MAX_BYTES):
            if ops:
                await self._tree.multi([*self._fence, *ops])
            for change in changes:
                try:
                    await self._prepare(change)
                except OSError as error:
                    failed = failed or error
                if cluster is not None:
                    cluster.announce(change)
                self._image.apply(change)
                self._act(change)
        if failed is not None:
            raise failed
        return decision.results


def _explanation(error: TreeError) -> str:
    is_open = isinstance(error, StoreUnavailable) and error.maybe_done
    outcome = (
        "whether the change was made is not known: look before you try again"
        if is_open
        else "nothing was changed"
    )
    return f"{error}; {outcome}"
