"""The metadata tree: what a store must do, in ZooKeeper's terms.

Methods are `async`: ZooKeeper answers over the network, and the embedded store by a thread, since a write of
its waits for the device. One interface for both means that the broker is written once.

A store has one user, the process's event loop; watchers are called on it.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

ANY_VERSION = -1
NOBODY = 0


class TreeError(Exception):
    """The store refused; `path` is the node it refused for."""

    def __init__(self, path: str, detail: str | None = None) -> None:
        super().__init__(detail or f"{type(self).__name__}: {path}")
        self.path = path


class NoNode(TreeError):
    """The node, or the parent of the node to create, does not exist."""


class NodeExists(TreeError):
    """A node of that path exists."""


class BadVersion(TreeError):
    """The node has changed since the caller read it."""


class NotEmpty(TreeError):
    """The node has children and cannot be deleted."""


class SessionLost(TreeError):
    """The store is closed or our session ended: ephemeral nodes are gone, and nothing more is read or
    written."""


class StoreUnavailable(TreeError):
    """The store did not answer in time; the text is one line that names it. The session may still live.

    `maybe_done`: the change was sent and no answer came, so nobody knows whether it was made.
    """

    def __init__(self, path: str, detail: str, *, maybe_done: bool = False) -> None:
        super().__init__(path, detail)
        self.maybe_done = maybe_done


class TreeNode(NamedTuple):
    """`created` numbers the creation (ZooKeeper's czxid): a node made again has a greater one. `owner` is the session of an
    ephemeral node, NOBODY of a lasting one."""

    data: bytes
    version: int
    created: int = 0
    owner: int = NOBODY


class Create(NamedTuple):
    """`sequence` appends ten digits to the path, counted by the parent; the result is the path made."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


class Set(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Changes nothing; fails the whole `multi` when the node is missing or at another version."""

    path: str
    version: int = ANY_VERSION


TreeOp = Create | Set | Delete | Check
OpResult = str | int | None


class EventKind(Enum):
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    LOST = "lost"
    """The session ended: events may be missing from here on; read again after a new session."""


class TreeEvent(NamedTuple):
    """Says that a node changed, not how: a watcher reads it again, so several changes may be seen as one."""

    kind: EventKind
    path: str


Watcher = Callable[[TreeEvent], None]


class MetadataTree(Protocol):
    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> Awaitable[str]:
        """The path made. Parents must exist, and an ephemeral node has no children."""

    def get(self, path: str) -> Awaitable[TreeNode]: ...

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Awaitable[int]:
        """The new version. The first version of a node is 0."""

    def delete(self, path: str, version: int = ANY_VERSION) -> Awaitable[None]: ...

    def children(self, path: str) -> Awaitable[list[str]]:
        """The children's names (not paths), sorted."""

    def exists(self, path: str) -> Awaitable[bool]: ...

    def subtree(self, path: str) -> Awaitable[dict[str, TreeNode]]:
        """The node and all below it, by path; empty when there is none. A snapshot only where the store has
        them: ZooKeeper reads node by node, so set the watch first."""

    def multi(self, ops: Sequence[TreeOp]) -> Awaitable[list[OpResult]]:
        """All or nothing, in order, each op seeing the ones before it; raises what the first failing one
        raises."""

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` of every change at or below `path`, after it took effect; call the result to stop.

        A store across a network may miss events while the connection is away. Back with the same session it
        tells CHANGED at `path` itself: read again what is below. After LOST the watcher stays registered and
        is told of what happens in the next session."""

    def close(self) -> Awaitable[None]:
        """End the session; ephemeral nodes vanish."""


def check_path(path: str) -> None:
    """A malformed path is a mistake of the caller's, hence ValueError and not a refusal."""
    if path == "/":
        return
    if not path.startswith("/") or "\x00" in path:
        raise ValueError(f"not a path of the metadata tree: {path!r}")
    for part in path[1:].split("/"):
        if part in ("", ".", ".."):
            raise ValueError(f"not a path of the metadata tree: {path!r}")


def check_op(op: TreeOp) -> None:
    """ValueError for a malformed path; the path of a sequence node may end in `/`, its name is then the number."""
    check_path(op.path + "0" if isinstance(op, Create) and op.sequence else op.path)


def split_path(path: str) -> tuple[str, str]:
    """Parent and name: `/a/b` is `/a` and `b`; `/a` is `/` and `a`."""
    parent, _, name = path.rpartition("/")
    return parent or "/", name


def is_at_or_below(path: str, *, root: str) -> bool:
    return path == root or root == "/" or path.startswith(root + "/")
