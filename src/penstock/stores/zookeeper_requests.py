"""From the tree's words to ZooKeeper's and back: paths, ops, access lists, refusals. Nothing here waits or is sent."""

from collections.abc import Sequence
from typing import Any

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
from penstock.stores import zookeeper_messages as messages
from penstock.stores import zookeeper_wire as wire
from penstock.stores.zookeeper_wire import Code, Refused

# With `zookeeper.set.acl` nobody but us reads what is below these, and anyone may write the other: Kafka's lists,
# and the last is ours.
SENSITIVE_PATHS = ("/config/users", "/config/brokers", "/delegation_token/tokens", "/brokers/shared_key")
OPEN_PATH = "/consumers"

# What ZooKeeper says of the ops of a multi beside the one that failed.
_BYSTANDERS = (Code.ROLLED_BACK, Code.RUNTIME_INCONSISTENCY)
_REFUSALS: dict[int, type[TreeError]] = {
    Code.NO_NODE: NoNode,
    Code.NODE_EXISTS: NodeExists,
    Code.BAD_VERSION: BadVersion,
    Code.NOT_EMPTY: NotEmpty,
}


class Requests:
    """`root` is the path below which the tree is kept in ZooKeeper, empty when that is all of it."""

    def __init__(self, root: str, *, set_acl: bool) -> None:
        self.root = root
        self._set_acl = set_acl

    def full(self, path: str) -> str:
        return self.root if path == "/" and self.root else self.root + path

    def relative(self, full_path: str) -> str:
        return full_path[len(self.root) :] or "/"

    def acl(self, path: str) -> list[wire.Acl]:
        """Only we may write, and anyone may read but secrets."""
        if not self._set_acl or path == OPEN_PATH:
            return [wire.ANYONE_MAY_ALL]
        if path.startswith(SENSITIVE_PATHS):
            return [wire.CREATOR_MAY_ALL]
        return [wire.CREATOR_MAY_ALL, wire.ANYONE_MAY_READ]

    def request(self, op: TreeOp) -> messages.Change:
        check_op(op)
        path = self.full(op.path)
        if isinstance(op, Create):
            if op.path == "/" and not op.sequence:
                raise NodeExists("/")
            flags = (messages.EPHEMERAL if op.ephemeral else 0) | (messages.SEQUENCE if op.sequence else 0)
            return messages.Create(path, op.data, self.acl(op.path), flags)
        if isinstance(op, Set):
            return messages.SetData(path, op.data, op.version)
        if isinstance(op, Delete):
            if op.path == "/":  # below a path it is to ZooKeeper a node like others
                raise NotEmpty("/")
            return messages.Delete(path, op.version)
        return messages.Check(path, op.version)

    def results(self, ops: Sequence[TreeOp], answers: list[Any]) -> list[OpResult]:
        """Of a multi; raises what its first failing op raises."""
        for op, answer in zip(ops, answers, strict=True):
            if isinstance(answer, Refused) and answer.code not in _BYSTANDERS:
                raise op_refusal(answer, op)
        return [self._result(op, answer) for op, answer in zip(ops, answers, strict=True)]

    def _result(self, op: TreeOp, answer: str | int | None) -> OpResult:
        return self.relative(answer) if isinstance(op, Create) and isinstance(answer, str) else answer


def op_refusal(error: Refused, op: TreeOp) -> TreeError:
    if isinstance(op, Create):
        parent = split_path(op.path)[0]
        if error.code == Code.NO_NODE:
            return NoNode(parent)
        if error.code == Code.NO_CHILDREN_FOR_EPHEMERALS:
            return TreeError(parent, f"an ephemeral node has no children: {parent}")
    return refusal(error, op.path)


def refusal(error: Refused, path: str) -> TreeError:
    if error.code in _REFUSALS:
        return _REFUSALS[error.code](path)
    if error.code == Code.SESSION_EXPIRED:
        return SessionLost(path, "the session with ZooKeeper has ended")
    if error.code == Code.NO_AUTH:
        return TreeError(path, f"ZooKeeper does not allow access to {path}: it belongs to another user")
    if error.code == Code.UNIMPLEMENTED:
        return TreeError(path, "this ZooKeeper is too old: version 3.6 or later is needed")
    if error.code == Code.INVALID_ACL:
        return TreeError(
            path,
            f"ZooKeeper refused {path}: zookeeper.set.acl needs a login (penstock.zookeeper.auth)",
        )
    return TreeError(path, f"ZooKeeper refused {path}: {error}")
