"""From the tree's words to ZooKeeper's and back: paths, ops, access lists, refusals. Nothing here waits or is sent."""

from collections.abc import Sequence
from typing import Any

from kazoo import exceptions as refused
from kazoo.protocol import serialization as wire
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from penstock.metadata.tree import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    OpResult,
    SessionLost,
    Set,
    TreeError,
    TreeOp,
    check_op,
    split_path,
)

EPHEMERAL = 1
SEQUENCE = 2
# With `zookeeper.set.acl` nobody but us reads what is below these, and anyone may write the other: Kafka's lists.
SENSITIVE_PATHS = ("/config/users", "/config/brokers", "/delegation_token/tokens")
OPEN_PATH = "/consumers"

# What ZooKeeper says of the ops of a multi beside the one that failed.
_BYSTANDERS = (refused.RolledBackError, refused.RuntimeInconsistency)
_REFUSALS: tuple[tuple[type[Exception], type[TreeError]], ...] = (
    (refused.NoNodeError, NoNode),
    (refused.NodeExistsError, NodeExists),
    (refused.BadVersionError, BadVersion),
    (refused.NotEmptyError, NotEmpty),
)


class Requests:
    """`root` is the path below which the tree is kept in ZooKeeper, empty when that is all of it."""

    def __init__(self, root: str, *, set_acl: bool) -> None:
        self.root = root
        self._set_acl = set_acl

    def full(self, path: str) -> str:
        return self.root if path == "/" and self.root else self.root + path

    def relative(self, full_path: str) -> str:
        return full_path[len(self.root) :] or "/"

    def acl(self, path: str) -> list[Any]:
        """Only we may write, and anyone may read but secrets."""
        if not self._set_acl or path == OPEN_PATH:
            return list(OPEN_ACL_UNSAFE)
        if path.startswith(SENSITIVE_PATHS):
            return list(CREATOR_ALL_ACL)
        return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]

    def request(self, op: TreeOp) -> Any:
        check_op(op)
        path = self.full(op.path)
        if isinstance(op, Create):
            if op.path == "/" and not op.sequence:
                raise NodeExists("/")
            flags = (EPHEMERAL if op.ephemeral else 0) | (SEQUENCE if op.sequence else 0)
            return wire.Create(path, op.data, self.acl(op.path), flags)
        if isinstance(op, Set):
            return wire.SetData(path, op.data, op.version)
        if isinstance(op, Delete):
            if op.path == "/":  # below a path it is to ZooKeeper a node like others
                raise NotEmpty("/")
            return wire.Delete(path, op.version)
        return wire.CheckVersion(path, op.version)

    def results(self, ops: Sequence[TreeOp], answers: list[Any]) -> list[OpResult]:
        """Of a multi; raises what its first failing op raises."""
        for op, answer in zip(ops, answers, strict=True):
            if isinstance(answer, Exception) and not isinstance(answer, _BYSTANDERS):
                raise op_refusal(answer, op)
        return [self._result(op, answer) for op, answer in zip(ops, answers, strict=True)]

    def _result(self, op: TreeOp, answer: Any) -> OpResult:
        if isinstance(op, Create):
            return self.relative(answer)
        if isinstance(op, Set):
            version: int = answer.version
            return version
        return None


def op_refusal(error: Exception, op: TreeOp) -> TreeError:
    if isinstance(op, Create):
        parent = split_path(op.path)[0]
        if isinstance(error, refused.NoNodeError):
            return NoNode(parent)
        if isinstance(error, refused.NoChildrenForEphemeralsError):
            return TreeError(parent, f"an ephemeral node has no children: {parent}")
    return refusal(error, op.path)


def refusal(error: Exception, path: str) -> TreeError:
    if isinstance(error, refused.SessionExpiredError):
        return SessionLost(path, "the session with ZooKeeper has ended")
    for kind, ours in _REFUSALS:
        if isinstance(error, kind):
            return ours(path)
    if isinstance(error, refused.NoAuthError):
        return TreeError(path, f"ZooKeeper does not let us touch {path}: it belongs to another user")
    if isinstance(error, refused.UnimplementedError):
        return TreeError(
            path, "this ZooKeeper is too old: 3.6 is the first that tells of all changes below a node"
        )
    if isinstance(error, refused.InvalidACLError):
        return TreeError(
            path, f"ZooKeeper refused {path}: zookeeper.set.acl needs a login (penstock.zookeeper.auth)"
        )
    return TreeError(path, f"ZooKeeper refused {path}: {type(error).__name__}")
