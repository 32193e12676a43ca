"""Nodes in memory with ZooKeeper's rules: versions, sequence numbers, owners of ephemeral nodes, all-or-nothing."""

from collections.abc import Callable, Sequence

from penstock.metadata.tree import (
    ANY_VERSION,
    NOBODY,
    BadVersion,
    Create,
    Delete,
    EventKind,
    NodeExists,
    NoNode,
    NotEmpty,
    OpResult,
    Set,
    TreeError,
    TreeEvent,
    TreeNode,
    TreeOp,
    split_path,
)


class _Entry:
    __slots__ = ("children", "created", "data", "next_sequence", "owner", "version")

    def __init__(self, data: bytes, *, created: int, owner: int) -> None:
        self.data = data
        self.version = 0
        self.created = created
        self.owner = owner
        self.next_sequence = 0
        self.children: dict[str, None] = {}  # in the order of their making

    def copy(self) -> "_Entry":
        other = _Entry(self.data, created=self.created, owner=self.owner)
        other.version, other.next_sequence = self.version, self.next_sequence
        other.children = dict(self.children)
        return other


class MemoryTree:
    def __init__(self) -> None:
        self._entries = {"/": _Entry(b"", created=0, owner=NOBODY)}
        self._last_change = 0  # ZooKeeper's zxid
        self._undo: list[Callable[[], None]] = []

    def get(self, path: str) -> TreeNode:
        entry = self._entry(path)
        return TreeNode(entry.data, entry.version, entry.created, entry.owner)

    def children(self, path: str) -> list[str]:
        return sorted(self._entry(path).children)

    def owner(self, path: str) -> int | None:
        """The session of an ephemeral node, NOBODY for a lasting one, None when there is no node."""
        entry = self._entries.get(path)
        return entry.owner if entry is not None else None

    def subtree(self, path: str) -> dict[str, TreeNode]:
        found: dict[str, TreeNode] = {}
        to_visit = [path] if path in self._entries else []
        while to_visit:
            each = to_visit.pop()
            found[each] = self.get(each)
            to_visit += [_join(each, name) for name in self._entries[each].children]
        return found

    @property
    def last_change(self) -> int:
        return self._last_change

    def copy(self) -> "MemoryTree":
        """As it is now; what changes here does not change there."""
        other = MemoryTree()
        other._entries = {path: entry.copy() for path, entry in self._entries.items()}
        other._last_change = self._last_change
        return other

    def repeat(self, ops: Sequence[TreeOp], session_id: int, change: int) -> list[TreeEvent]:
        """What was applied elsewhere as the change of that number."""
        self._last_change = change - 1
        return self.apply(ops, session_id)[1]

    def apply(self, ops: Sequence[TreeOp], session_id: int) -> tuple[list[OpResult], list[TreeEvent]]:
        """All of `ops` or, with what the first failing one raises, none."""
        self._last_change += 1
        self._undo.clear()
        results: list[OpResult] = []
        events: list[TreeEvent] = []
        try:
            for op in ops:
                results.append(self._apply(op, session_id, events))
        except TreeError:
            for undo in reversed(self._undo):
                undo()
            raise
        return results, events

    def ephemerals(self, session_id: int) -> list[str]:
        return [path for path, entry in self._entries.items() if entry.owner == session_id]

    def _apply(self, op: TreeOp, session_id: int, events: list[TreeEvent]) -> OpResult:
        if isinstance(op, Create):
            path = self._create(op, session_id)
            events.append(TreeEvent(EventKind.CREATED, path))
            return path
        entry = self._entry(op.path)
        if op.version not in (ANY_VERSION, entry.version):
            raise BadVersion(
                op.path, f"BadVersion: {op.path} is at version {entry.version}, not {op.version}"
            )
        if isinstance(op, Set):
            self._set(entry, op.data, entry.version + 1)
            events.append(TreeEvent(EventKind.CHANGED, op.path))
            return entry.version
        if isinstance(op, Delete):
            if op.path == "/" or entry.children:
                raise NotEmpty(op.path)
            self._remove(op.path)
            self._undo.append(lambda: self._add(op.path, entry))
            events.append(TreeEvent(EventKind.DELETED, op.path))
        return None

    def _create(self, op: Create, session_id: int) -> str:
        if op.path == "/" and not op.sequence:
            raise NodeExists("/")
        parent_path, name = split_path(op.path)
        parent = self._entries.get(parent_path)
        if parent is None:
            raise NoNode(parent_path)
        if parent.owner != NOBODY:
            raise TreeError(parent_path, f"an ephemeral node has no children: {parent_path}")
        if op.sequence:
            name = f"{name}{parent.next_sequence:010d}"
        path = _join(parent_path, name)
        if path in self._entries:
            raise NodeExists(path)
        owner = session_id if op.ephemeral else NOBODY
        self._add(path, _Entry(op.data, created=self._last_change, owner=owner))
        self._undo.append(lambda: self._remove(path))
        return path

    def _set(self, entry: _Entry, data: bytes, version: int) -> None:
        before = entry.data, entry.version
        entry.data, entry.version = data, version

        def undo() -> None:
            entry.data, entry.version = before

        self._undo.append(undo)

    def _add(self, path: str, entry: _Entry) -> None:
        parent, name = split_path(path)
        self._entries[path] = entry
        self._entries[parent].children[name] = None
        self._entries[parent].next_sequence += 1  # as in ZooKeeper it counts every child, never backwards

    def _remove(self, path: str) -> None:
        parent, name = split_path(path)
        del self._entries[path]
        del self._entries[parent].children[name]

    def _entry(self, path: str) -> _Entry:
        entry = self._entries.get(path)
        if entry is None:
            raise NoNode(path)
        return entry


def _join(parent: str, name: str) -> str:
    return f"/{name}" if parent == "/" else f"{parent}/{name}"
