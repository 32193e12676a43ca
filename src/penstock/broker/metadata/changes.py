"""The only way to change metadata: decide, write to the tree, update the image, act. One change at a time.

A decision is made from the image as it is under the lock and written to the tree as one `multi`, or as several that each
leave the tree in order. Then each change is prepared (logs are opened), announced to the other brokers, applied to the
image, and acted upon (logs removed, options replaced). A failed write changes nothing. After the write the change is final: if
a disk fails then, the request fails, but the image follows the tree.

In a cluster each write checks that we are still the controller. When it is not known whether a write was made, or when the tree
differs from the image, the image is read again before the next decision. When we are no longer the controller, the image
belongs to our successor: unfinished changes are not applied to it.
"""

import logging
from asyncio import CancelledError, Lock, timeout
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeVar

from penstock.controller.decision import Decision, chunks
from penstock.metadata import znodes
from penstock.metadata.image import (
    BROKERS,
    NO_LEADER,
    AclsChanged,
    Change,
    ClusterImage,
    ConfigsChanged,
    PartitionChanged,
    TokenChanged,
)
from penstock.metadata.load import Controllership
from penstock.metadata.tree import (
    BadVersion,
    Check,
    Delete,
    MetadataTree,
    NoNode,
    SessionLost,
    Set,
    StoreUnavailable,
    TreeError,
    TreeOp,
)
from penstock.model.errors import ApiError, ErrorCode

log = logging.getLogger("penstock.broker")

Result = TypeVar("Result")
Decide = Callable[[], Decision[Result] | Awaitable[Decision[Result]]]
"""Called under the lock. One that waits may read the tree, but decides from an image that it looks at after that."""

WRITTEN_BY_ANYBODY: Final = (ConfigsChanged, AclsChanged, TokenChanged)
OTHERS_CHANGE_IT: Final = "somebody else changes it at the same time: look, and try again"
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

    def unsure(self) -> None:
        """A write may have been left halfway: have the image read again soon, and what is begun completed."""

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
        self._has_written = False
        self._term = 0  # counts how often we became the controller, or ceased to be it
        self.election_count = 0
        """Leaders that this controller made of a partition that had none, or another."""
        self.unclean_election_count = 0
        """Those that were not in the in-sync set."""
        self.is_allowed = True
        """In a cluster only the controller may change anything."""
        self.may_anybody: Callable[[], bool] = lambda: False
        """Whether any broker may write configs, access rules and tokens: while a broker of Apache Kafka is the controller."""

    def control(self, cluster: Cluster, won: Controllership) -> None:
        self._cluster = cluster
        self._fence = [Check(znodes.CONTROLLER_EPOCH, won.epoch_version)]
        self._is_unsure = False
        self._term += 1
        self.is_allowed = True

    def resign(self) -> None:
        self._term += 1
        self.is_allowed = False

    def look_again(self) -> None:
        """The tree has what the image does not: it is read again before the next decision."""
        self._doubt()

    async def make_for_client(
        self, decide: Decide[Result], patience_ms: int = DEFAULT_PATIENCE_MS
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
                "the metadata store did not answer in time; "
                "it is not known whether the change was made: check before you try again",
            ) from None

    async def make(self, decide: Decide[Result]) -> list[Result]:
        """What the decision answers, once it is in the tree and in force."""
        async with self._lock:
            if not self.is_allowed and self.may_anybody():
                return await self._make_beside(decide)
            term = self._term
            for attempt in range(ATTEMPTS):
                try:
                    return await self._make(decide, term)
                except CancelledError:
                    self._doubt()
                    raise
                except (StoreUnavailable, SessionLost) as error:
                    self._doubt()
                    explanation = _explanation(error, is_halfway=self._has_written)
                    raise ApiError(ErrorCode.REQUEST_TIMED_OUT, explanation) from error
                except TreeError as error:
                    if self._cluster is None:
                        raise
                    if isinstance(error, BadVersion) and error.path == znodes.CONTROLLER_EPOCH:
                        if term == self._term:  # else we know, and may be the controller again
                            self._cluster.replaced()
                        break
                    log.warning("the metadata tree is not as expected (%s): reading it again", error)
                    self._doubt()
                    if attempt == ATTEMPTS - 1:
                        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
            raise ApiError(ErrorCode.NOT_CONTROLLER)

    async def _make_beside(self, decide: Decide[Result]) -> list[Result]:
        """Without being the controller, and so without its fence: others may write the same at the same time. So configs are
        written over those from which was decided, and over no others: somebody's retention would be lost with them."""
        for _ in range(ATTEMPTS):
            decided = decide()
            decision = decided if isinstance(decided, Decision) else await decided
            if not all(isinstance(change, WRITTEN_BY_ANYBODY) for change in decision.changes):
                raise ApiError(ErrorCode.NOT_CONTROLLER)
            try:
                versions = await self._decided_from(decision)
                if versions is None:
                    continue
                for ops, changes in chunks(decision, max_ops=MAX_OPS, max_bytes=MAX_BYTES):
                    if ops:
                        await self._tree.multi([_over(op, versions) for op in ops])
                    for change in changes:
                        self._image.apply(change)
                        self._act(change)
            except BadVersion:
                continue
            except TreeError as error:
                raise ApiError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{error}; somebody else may have changed it: look, and try again",
                ) from error
            return decision.results
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, OTHERS_CHANGE_IT)

    async def _decided_from(self, decision: Decision[Result]) -> dict[str, int] | None:
        """The versions of the configs that change. None where the tree had others than the image, which knows them now."""
        changed = [change for change in decision.changes if isinstance(change, ConfigsChanged)]
        versions: dict[str, int] = {}
        if changed:
            await self._tree.multi([Check(znodes.CONFIG)])  # what is read after a write is not older
        for kind, name, _ in changed:
            path = znodes.config_path(kind, name)
            stored: dict[str, str] | None = None
            try:
                node = await self._tree.get(path)
                stored, versions[path] = dict(znodes.decode_config(path, node.data)), node.version
            except NoNode:
                pass
            except znodes.BadNode as error:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
            image = self._image
            known = dict(image.overrides(kind, name)) if image.has_config_node(kind, name) else None
            if stored != known:
                if kind == BROKERS:  # with passwords, which are opened elsewhere
                    raise ApiError(ErrorCode.REQUEST_TIMED_OUT, OTHERS_CHANGE_IT)
                fresh = ConfigsChanged(kind, name, stored)
                image.apply(fresh)
                self._act(fresh)
                return None
        return versions

    def _doubt(self) -> None:
        self._is_unsure = True
        if self._cluster is not None:
            self._cluster.unsure()

    def _check_term(self, term: int) -> None:
        if not self.is_allowed or term != self._term:
            raise ApiError(ErrorCode.NOT_CONTROLLER)

    async def _make(self, decide: Decide[Result], term: int) -> list[Result]:
        self._check_term(term)
        self._has_written = False
        cluster = self._cluster
        if self._is_unsure and cluster is not None:
            # A write, if one of nothing: what is read after it is not older, whichever of the store's servers we read from.
            await self._tree.multi(self._fence)
            await cluster.reload()
            self._check_term(term)
            self._is_unsure = False
        decided = decide()
        decision = decided if isinstance(decided, Decision) else await decided
        failed: OSError | None = None
        for ops, changes in chunks(decision, max_ops=MAX_OPS, max_bytes=MAX_BYTES):
            self._check_term(term)
            if ops:
                await self._tree.multi([*self._fence, *ops])
                self._has_written = True
            for change in changes:
                try:
                    await self._prepare(change)
                except OSError as error:
                    failed = failed or error
                self._check_term(term)
                if cluster is not None:
                    cluster.announce(change)
                if isinstance(change, PartitionChanged):
                    self._count_election(change)
                self._image.apply(change)
                self._act(change)
        if failed is not None:
            raise failed
        return decision.results

    def _count_election(self, change: PartitionChanged) -> None:
        before = self._image.partition(change.name, change.partition_index)
        leader = change.partition.leader
        if before is not None and leader not in (NO_LEADER, before.leader):
            self.election_count += 1
            self.unclean_election_count += leader not in before.isr


def _over(op: TreeOp, versions: Mapping[str, int]) -> TreeOp:
    if isinstance(op, Set | Delete) and op.path in versions:
        return op._replace(version=versions[op.path])
    return op


def _explanation(error: TreeError, *, is_halfway: bool) -> str:
    maybe_done = isinstance(error, StoreUnavailable) and error.maybe_done
    outcome = (
        "it is not known whether the change was made: check before you try again"
        if maybe_done or is_halfway
        else "nothing was changed"
    )
    return f"{error}; {outcome}"
