"""What every metadata store must do. A new store joins by adding its opener to STORES; the one in ZooKeeper, which
needs a server, does the same in `tests/zookeeper/test_every_behaviour.py`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.metadata.tree import (
    BadVersion,
    Check,
    Create,
    Delete,
    EventKind,
    MetadataTree,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionLost,
    Set,
    TreeError,
    TreeEvent,
    TreeNode,
)
from penstock.stores import embedded
from simulation.memory_store import MemorySession, MemoryZooKeeper

Run = Callable[[Awaitable[Any]], Any]
Open = Callable[[], MetadataTree]


def open_embedded(path: Path, run: Run) -> Open:
    return lambda: embedded.open_store(str(path))


def open_memory(path: Path, run: Run) -> Open:
    async def make() -> MemoryZooKeeper:
        return MemoryZooKeeper(asyncio.get_running_loop())

    zookeeper = run(make())

    def open_it() -> MetadataTree:
        session = MemorySession(zookeeper)
        run(session.reconnect())
        return session

    return open_it


STORES: dict[str, Callable[[Path, Run], Open]] = {"embedded": open_embedded, "memory": open_memory}


@pytest.fixture
def run() -> Iterator[Run]:
    with asyncio.Runner() as runner:

        async def await_it(awaitable: Awaitable[Any]) -> Any:
            return await awaitable

        yield lambda awaitable: runner.run(await_it(awaitable))


@pytest.fixture(params=STORES)
def open_tree(request: pytest.FixtureRequest, tmp_path: Path, run: Run) -> Iterator[Open]:
    opened: list[MetadataTree] = []
    opener = STORES[request.param](tmp_path, run)

    def open_it() -> MetadataTree:
        opened.append(opener())
        return opened[-1]

    yield open_it
    for tree in opened:
        run(tree.close())


@pytest.fixture
def tree(open_tree: Open) -> MetadataTree:
    return open_tree()


def content(node: TreeNode) -> tuple[bytes, int]:
    return node.data, node.version


def test_a_new_tree_holds_the_root_alone(tree: MetadataTree, run: Run) -> None:
    assert run(tree.exists("/"))
    assert run(tree.children("/")) == []


def test_a_node_is_read_as_it_was_created(tree: MetadataTree, run: Run) -> None:
    assert run(tree.create("/a", b"one")) == "/a"
    assert content(run(tree.get("/a"))) == (b"one", 0)


def test_a_node_needs_its_parent(tree: MetadataTree, run: Run) -> None:
    with pytest.raises(NoNode) as caught:
        run(tree.create("/a/b"))
    assert caught.value.path == "/a"


def test_a_node_is_created_once(tree: MetadataTree, run: Run) -> None:
    run(tree.create("/a"))
    with pytest.raises(NodeExists):
        run(tree.create("/a"))


def test_what_is_not_there_cannot_be_read_set_or_deleted(tree: MetadataTree, run: Run) -> None:
    for attempt in (tree.get("/a"), tree.set("/a", b""), tree.delete("/a"), tree.children("/a")):
        with pytest.raises(NoNode):
            run(attempt)


def test_each_set_counts_the_version_up(tree: MetadataTree, run: Run) -> None:
    run(tree.create("/a"))
    assert run(tree.set("/a", b"one")) == 1
    assert run(tree.set("/a", b"two", 1)) == 2
    assert content(run(tree.get("/a"))) == (b"two", 2)


def test_a_change_that_names_an_old_version_is_refused(tree: MetadataTree, run: Run) -> None:
    run(tree.create("/a", b"zero"))
    run(tree.set("/a", b"one"))
    for attempt in (tree.set("/a", b"late", 0), tree.delete("/a", 0)):
        with pytest.raises(BadVersion):
            run(attempt)
    assert content(run(tree.get("/a"))) == (b"one", 1)


def test_a_node_created_again_begins_at_version_0(tree: MetadataTree, run: Run) -> None:
    run(tree.create("/a"))
    run(tree.set("/a", b"one"))
    run(tree.delete("/a"))
    run(tree.create("/a"))
    assert run(tree.get("/a")).version == 0


def test_each_node_is_created_later_than_the_ones_before(open_tree: Open, run: Run) -> None:
    tree = open_tree()
    run(tree.create("/a", ephemeral=True))
    first = run(tree.get("/a")).created
    run(tree.delete("/a"))
    run(tree.create("/b"))
    second = run(tree.get("/b")).created
    run(tree.set("/b", b"one"))
    assert run(tree.subtree("/"))["/b"].created == second > first
    run(tree.close())
    tree = open_tree()
    run(tree.create("/a", ephemeral=True))
    assert run(tree.get("/a")).created > run(tree.get("/b")).created == second


def test_a_node_with_children_is_not_deleted(tree: MetadataTree, run: Run) -> None:
    run(tree.create("/a"))
    run(tree.create("/a/b"))
    with pytest.raises(NotEmpty):
        run(tree.delete("/a"))
    run(tree.delete("/a/b"))
    run(tree.delete("/a"))
    assert not run(tree.exists("/a"))


def test_the_root_is_not_deleted(tree: MetadataTree, run: Run) -> None:
    with pytest.raises(NotEmpty):
        run(tree.delete("/"))


def test_children_are_names_in_order_and_only_one_level(tree: MetadataTree, run: Run) -> None:
    for path in ("/a", "/a/z", "/a/b", "/a/b/c", "/ab", "/a0"):
        run(tree.create(path))
    assert run(tree.children("/a")) == ["b", "z"]
    assert run(tree.children("/")) == ["a", "a0", "ab"]


def test_a_subtree_is_the_node_and_all_below_it(tree: MetadataTree, run: Run) -> None:
    for path in ("/a", "/a/b", "/a/b/c", "/a-b", "/a0", "/é"):
        run(tree.create(path, path.encode()))
    found = run(tree.subtree("/a"))
    assert {p: content(node) for p, node in found.items()} == {
        p: (p.encode(), 0) for p in ("/a", "/a/b", "/a/b/c")
    }
    assert len(run(tree.subtree("/"))) == 7
    assert run(tree.subtree("/none")) == {}


def test_sequence_nodes_are_numbered_upwards_with_ten_digits(tree: MetadataTree, run: Run) -> None:
    run(tree.create("/a"))
    first, second = [run(tree.create("/a/change_", sequence=True)) for _ in range(2)]
    assert first == "/a/change_0000000000"
    run(tree.delete(second))
    assert run(tree.create("/a/change_", sequence=True)) > second


def test_all_of_a_multi_happens_in_order(tree: MetadataTree, run: Run) -> None:
    ops = [Create("/a"), Create("/a/b", b"one"), Set("/a/b", b"two", 0), Check("/a/b", 1), Delete("/a/b", 1)]
    assert run(tree.multi(ops)) == ["/a", "/a/b", 1, None, None]
    assert run(tree.children("/a")) == []


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (Create("/here"), NodeExists),
        (Create("/none/a", ephemeral=True), NoNode),
        (Set("/here", b"", 5), BadVersion),
        (Delete("/none"), NoNode),
        (Check("/here", 5), BadVersion),
        (Check("/none"), NoNode),
    ],
)
def test_nothing_of_a_multi_happens_when_one_op_fails(
    tree: MetadataTree, run: Run, failing: Any, error: type[Exception]
) -> None:
    run(tree.create("/here", b"before"))
    events: list[TreeEvent] = []
    tree.watch("/", events.append)
    with pytest.raises(error):
        run(tree.multi([Create("/new"), Create("/brief", ephemeral=True), Set("/here", b"after"), failing]))
    assert run(tree.children("/")) == ["here"]
    assert content(run(tree.get("/here"))) == (b"before", 0)
    assert events == []


def test_an_empty_multi_is_nothing(tree: MetadataTree, run: Run) -> None:
    assert run(tree.multi([])) == []


def test_an_ephemeral_node_is_one_among_the_others(tree: MetadataTree, run: Run) -> None:
    run(tree.create("/a", ephemeral=True))
    run(tree.create("/b"))
    assert run(tree.children("/")) == ["a", "b"]
    assert run(tree.set("/a", b"one")) == 1
    with pytest.raises(NodeExists):
        run(tree.create("/a"))
    with pytest.raises(TreeError, match="no children"):
        run(tree.create("/a/c"))
    run(tree.delete("/a"))
    assert run(tree.children("/")) == ["b"]


def test_only_ephemeral_nodes_are_gone_after_a_restart(open_tree: Open, run: Run) -> None:
    tree = open_tree()
    run(tree.create("/stays", b"one"))
    run(tree.set("/stays", b"two"))
    run(tree.create("/goes", ephemeral=True))
    run(tree.close())
    tree = open_tree()
    assert run(tree.children("/")) == ["stays"]
    assert content(run(tree.get("/stays"))) == (b"two", 1)


def test_a_watcher_is_told_of_its_node_and_all_below(tree: MetadataTree, run: Run) -> None:
    run(tree.create("/a"))
    events: list[TreeEvent] = []
    stop = tree.watch("/a", events.append)
    run(tree.create("/ab"))
    run(tree.create("/a/b"))
    run(tree.set("/a/b", b"one"))
    run(tree.delete("/a/b"))
    run(tree.set("/a", b"two"))
    stop()
    run(tree.set("/a", b"unheard"))
    assert events == [
        TreeEvent(EventKind.CREATED, "/a/b"),
        TreeEvent(EventKind.CHANGED, "/a/b"),
        TreeEvent(EventKind.DELETED, "/a/b"),
        TreeEvent(EventKind.CHANGED, "/a"),
    ]


def test_a_watchers_mistake_reaches_neither_the_writer_nor_the_others(
    tree: MetadataTree, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: TreeEvent) -> None:
        raise RuntimeError("oh")

    events: list[TreeEvent] = []
    tree.watch("/", broken)
    tree.watch("/", events.append)
    run(tree.create("/a"))
    assert [event.path for event in events] == ["/a"]
    assert "a watcher of / failed at /a" in caplog.text


def test_a_closed_store_says_so(tree: MetadataTree, run: Run) -> None:
    run(tree.close())
    for attempt in (tree.get("/"), tree.create("/a"), tree.multi([Create("/a")])):
        with pytest.raises(SessionLost):
            run(attempt)
    run(tree.close())


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/.", "/a/..", "/a\x00"])
def test_a_malformed_path_is_the_callers_mistake(tree: MetadataTree, run: Run, path: str) -> None:
    for attempt in (tree.create(path), tree.get(path), tree.multi([Set(path, b"")])):
        with pytest.raises(ValueError):
            run(attempt)
