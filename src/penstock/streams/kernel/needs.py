"""What the steps of a plan want of one another: who reads whom, whose old rows and which views are asked for.

A table keeps a store only when somebody asks: a filter that must know whether a row was there before, a join that looks the other
side up. So `CREATE TABLE b AS SELECT … FROM a` keeps nothing.
"""

from __future__ import annotations

from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import TABLE, JoinKind, Node, Plan
from penstock.streams.plan.sources import DEFAULT_GRACE_MS, Window, WindowKind


class Needs:
    def __init__(self, plan: Plan) -> None:
        self.nodes: tuple[Node, ...] = tuple(plan.nodes())
        self._readers: dict[str, list[tuple[Node, int]]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for at, each in enumerate(nodes.inputs(node)):
                self._readers[each.name].append((node, at))
        self._olds: dict[str, bool] = {}
        self._views: set[str] = set()
        for node in self.nodes:
            for each in _looked_up(node):
                self._ask_view(each)

    def readers(self, node: Node) -> list[tuple[Node, int]]:
        """Who takes the node's rows, and as which of its inputs."""
        return self._readers[node.name]

    def wants_old(self, node: Node) -> bool:
        """Whether somebody asks a table's change what the row was before."""
        if node.name not in self._olds:
            self._olds[node.name] = node.kind is TABLE and any(
                self._asks_old(reader, at) for reader, at in self.readers(node)
            )
        return self._olds[node.name]

    def wants_store(self, node: Node) -> bool:
        """Whether a node that does not keep its rows anyhow must: for old rows or for a view."""
        match node:
            case nodes.Read():
                return (
                    node.kind is TABLE
                    and node.materialized
                    and (self.wants_old(node) or node.name in self._views)
                )
            case nodes.ForeignKeyJoin() | nodes.Suppress():
                return self.wants_old(node) or node.name in self._views
            case nodes.Repartition():
                return node.kind is TABLE and node.name in self._views
            case nodes.SelectKey():
                return node.kind is TABLE
            case _:
                return False

    def knows_old(self, node: Node) -> bool:
        """Whether a missing old row says that there was none."""
        match node:
            case nodes.Read():
                return self.wants_store(node)
            case nodes.Filter() | nodes.Project() | nodes.Repartition():
                return self.knows_old(node.input)
            case nodes.TableTableJoin():
                return self.knows_old(node.left) and self.knows_old(node.right)
            case _:
                return True

    def is_final(self, node: Node) -> bool:
        """An aggregate of whose windows only the last row goes on."""
        return any(isinstance(reader, nodes.Suppress) for reader, _ in self.readers(node))

    def grace_ms(self, node: Node) -> int:
        assert node.window is not None
        final = isinstance(node, nodes.Suppress) or self.is_final(node)
        return grace_of(node.window, is_final=final)

    def _asks_old(self, reader: Node, at: int) -> bool:
        match reader:
            case nodes.Filter() | nodes.RegroupTable():
                return True
            case nodes.Aggregate():
                return not isinstance(reader.input, nodes.RegroupTable)
            case nodes.ForeignKeyJoin():
                return at == 0
            case nodes.TableTableJoin():
                is_kept = reader.join in (JoinKind.FULL, JoinKind.RIGHT if at else JoinKind.LEFT)
                return is_kept or self.wants_old(reader)  # a row that was not there ends nothing
            case nodes.Project() | nodes.Repartition():
                return self.wants_old(reader)
            case _:
                return False

    def _ask_view(self, node: Node) -> None:
        match node:
            case nodes.Filter() | nodes.Project():
                self._ask_view(node.input)
            case nodes.TableTableJoin():
                self._ask_view(node.left)
                self._ask_view(node.right)
            case _:
                self._views.add(node.name)


def grace_of(window: Window, *, is_final: bool) -> int:
    """ksqlDB's default is 24 hours from the start of a window, so what a window is longer is taken from its grace."""
    if window.grace_ms is not None:
        return window.grace_ms
    return 0 if is_final else max(DEFAULT_GRACE_MS - window.size_ms, 0)


def retention_of(window: Window, grace_ms: int) -> int:
    """Of sliding windows those two sizes before a row say what is in a new one."""
    sizes = 3 if window.kind is WindowKind.SLIDING else 1
    return max(window.retention_ms or 0, sizes * window.size_ms + grace_ms)


def _looked_up(node: Node) -> tuple[Node, ...]:
    match node:
        case nodes.StreamTableJoin():
            return (node.right,)
        case nodes.TableTableJoin() | nodes.ForeignKeyJoin():
            return (node.left, node.right)
        case _:
            return ()
