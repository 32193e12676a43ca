"""What a disk in memory holds, as far as names and bytes go: now, and on the device. See `disk`."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple, Union


class Contents:
    """The bytes of a file, whatever its name."""

    __slots__ = ("cold_bytes", "data", "is_locked", "synced")

    def __init__(self, data: bytes = b"", synced: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = synced
        self.is_locked = False
        self.cold_bytes = (
            0  # so many from the beginning are on the device only; one read brings all of them into memory
        )


class Directory:
    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node = Union[Contents, Directory]  # noqa: UP007  (a forward reference in an annotation of a class above)


class NameChange(NamedTuple):
    """Each (directory, name) now means this node; None: nothing. All of it happens, or none."""

    links: tuple[tuple[Directory, str, Node | None], ...]


def apply(change: NameChange) -> None:
    for directory, name, node in change.links:
        if node is None:
            directory.durable.pop(name, None)
        else:
            directory.durable[name] = node


def resize(data: bytearray, size: int) -> None:
    del data[size:]
    data += bytes(size - len(data))


def torn_bytes(contents: Contents, random: Random, page_bytes: int) -> bytes:
    """The synced bytes with some of the pages that were written since; a page that is missing below a later one is zeros."""
    data, synced = contents.data, contents.synced
    if data == synced:
        return synced
    chance = random.choice((0.0, 0.5, 0.9, 1.0))
    result = bytearray(synced)
    for start in range(0, len(data), page_bytes):
        page = data[start : start + page_bytes]
        if page != synced[start : start + page_bytes] and random.random() < chance:
            resize(result, max(len(result), start + len(page)))
            result[start : start + len(page)] = page
    if len(result) > len(data) and random.random() < chance:
        resize(result, len(data))
    return bytes(result)


def copy_tree(
    root: Directory,
    kept: list[NameChange],
    bytes_of: Callable[[Contents], bytes],
    *,
    durable_only: bool,
) -> tuple[Directory, list[NameChange]]:
    """Another root with the same files, and `kept` in terms of it. `durable_only`: as after a power failure, with `kept`
    done and everything that is there on the device.
    """
    known: dict[int, Node] = {}

    def copied(node: Node) -> Node:
        there = known.get(id(node))
        if there is None:
            if isinstance(node, Contents):
                data = bytes_of(node)
                there = known[id(node)] = Contents(data, data if durable_only else node.synced)
            else:
                there = known[id(node)] = Directory()
                fill(node, there)
        return there

    def fill(directory: Directory, there: Directory) -> None:
        there.durable = {name: copied(node) for name, node in directory.durable.items()}
        if not durable_only:
            there.entries = {name: copied(node) for name, node in directory.entries.items()}

    copied_root = known[id(root)] = Directory()
    fill(root, copied_root)
    changes = []
    for change in kept:
        links = []
        for directory, name, node in change.links:
            where = copied(directory)
            assert isinstance(where, Directory)
            links.append((where, name, None if node is None else copied(node)))
        changes.append(NameChange(tuple(links)))
    if not durable_only:
        return copied_root, changes
    for change in changes:
        apply(change)
    for node in known.values():
        if isinstance(node, Directory):
            node.entries = dict(node.durable)
    return copied_root, []
