"""The metadata tree in one SQLite file, for a broker that is its own cluster.

The file lies in the first log directory, beside the logs it describes: a data directory that is moved or
copied stays whole, and a lost disk loses both or neither.

Layout: table `nodes`, one row per node, keyed by (parent, name) so that the children of a node are neighbours
and need no second index. The root's row is ('/', ''), and its `created` counts the openings of the file: a node's
`created` is that count and, below it, a count within the opening, so that it grows over restarts without
a write of its own. (Format 1 had no such column; it is added at the first opening.)

Ephemeral nodes live in a temporary table in memory: they cannot outlive the process, and registering a broker
costs no fsync. Both take part in one SQLite transaction, so a `multi` over both is still atomic.

The write-ahead log is synced on every commit (`synchronous=FULL`): a call that returned survives a power cut.
The file is locked for as long as the store is open (`locking_mode=EXCLUSIVE`), because a second process would
be served no events.

The file is touched by one thread of the store's own: the event loop never waits for it, also not a read behind a
commit, and calls take effect in the order in which they were made. What was begun is done, also when whoever asked
for it is cancelled. Watchers are called on the loop, before the call that made the change returns.
"""

import os
import sqlite3
from asyncio import Future, get_running_loop, shield
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar, TypeVarTuple

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
    SessionLost,
    Set,
    TreeError,
    TreeEvent,
    TreeNode,
    TreeOp,
    Watcher,
    check_op,
    check_path,
    split_path,
)
from penstock.stores.watchers import Watchers

FILE_NAME = "penstock-metadata.db"
APPLICATION_ID = 0x504E_5354  # "PNST", in the file's header: how we know our own
SCHEMA_VERSION = 2
FIRST_SCHEMA_VERSION = 1  # the oldest that is brought up to date
CREATIONS_BITS = 32  # of `created`: one opening makes at most so many nodes
ONLY_SESSION = 1  # the owner of every ephemeral node: the file has one user
CACHE_KIB = 512  # pages kept in memory at most; the tree is read once at start

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

_COLUMNS = """(
    parent TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, version INTEGER NOT NULL,
    next_sequence INTEGER NOT NULL, created INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (parent, name)) WITHOUT ROWID"""


class StoreError(OSError):
    """The file cannot be used; the text is one line for the operator. The file has been left as it was.

    A fault of the disk like others: a request that meets it is refused with KAFKA_STORAGE_ERROR and may be tried again.
    """


class EmbeddedStore:
    def __init__(self, database: sqlite3.Connection, *, file_path: str, last_created: int) -> None:
        self._database = database
        self._file_path = file_path
        self._last_created = last_created
        self._watchers = Watchers()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-store")
        self._closed = False

    # On the loop.

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        (made,) = await self.multi([Create(path, data, ephemeral, sequence)])
        assert isinstance(made, str)
        return made

    async def get(self, path: str) -> TreeNode:
        return await self._begin(self._get, path)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        (new_version,) = await self.multi([Set(path, data, version)])
        assert isinstance(new_version, int)
        return new_version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def children(self, path: str) -> list[str]:
        return await self._begin(self._children, path)

    async def exists(self, path: str) -> bool:
        return await self._begin(self._row, path) is not None

    async def subtree(self, path: str) -> dict[str, TreeNode]:
        return await self._begin(self._subtree, path)

    async def multi(self, ops: Sequence[TreeOp]) -> list[OpResult]:
        for op in ops:
            check_op(op)
        written = self._begin(self._write, tuple(ops))
        written.add_done_callback(self._tell)
        results, _ = await shield(written)
        return results

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        return self._watchers.add(path, watcher)

    async def close(self) -> None:
        """When all that was begun is done."""
        if not self._closed:
            closing = self._begin(self._database.close)
            self._closed = True
            self._watchers.clear()
            await shield(closing)
            self._thread.shutdown(wait=False)

    def _begin(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> "Future[Result]":
        if self._closed:
            raise SessionLost("/", "the metadata store is closed")
        return get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _tell(self, written: "Future[tuple[list[OpResult], list[TreeEvent]]]") -> None:
        if not written.cancelled() and written.exception() is None:
            for event in written.result()[1]:
                self._watchers.tell(event)

    # In the thread.

    def _get(self, path: str) -> TreeNode:
        row = self._row(path)
        if row is None:
            raise NoNode(path)
        return TreeNode(row[0], row[1], row[4], _owner(row[3]))

    def _children(self, path: str) -> list[str]:
        if self._row(path) is None:
            raise NoNode(path)
        rows = self._query("SELECT name FROM all_nodes WHERE parent = ? AND name <> ''", (path,))
        return sorted(name for (name,) in rows)

    def _subtree(self, path: str) -> dict[str, TreeNode]:
        top = self._row(path)
        if top is None:
            return {}
        nodes = {path: TreeNode(top[0], top[1], top[4], _owner(top[3]))}
        # Everything below /a has a parent that is /a or lies between "/a/" and "/a0", as "0" follows "/".
        stem = "" if path == "/" else path
        rows = self._query(
            "SELECT parent, name, data, version, created, home FROM all_nodes"
            " WHERE (parent = ? OR (parent >= ? AND parent < ?)) AND name <> ''",
            (path, stem + "/", stem + "0"),
        )
        for parent, name, data, version, created, home in rows:
            nodes[_join(parent, name)] = TreeNode(data, version, created, _owner(home))
        return nodes

    def _write(self, ops: Sequence[TreeOp]) -> tuple[list[OpResult], list[TreeEvent]]:
        events: list[TreeEvent] = []
        results: list[OpResult] = []
        self._query("BEGIN IMMEDIATE")
        try:
            for op in ops:
                results.append(self._apply(op, events))
            self._query("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._query("ROLLBACK")
            raise
        return results, events

    # One op at a time, inside the transaction.

    def _apply(self, op: TreeOp, events: list[TreeEvent]) -> OpResult:
        if isinstance(op, Create):
            path = self._create(op)
            events.append(TreeEvent(EventKind.CREATED, path))
            return path
        table, version = self._expect(op.path, op.version)
        parent, name = _key(op.path)
        if isinstance(op, Set):
            self._query(
                f"UPDATE {table} SET data = ?, version = ? WHERE parent = ? AND name = ?",
                (op.data, version + 1, parent, name),
            )
            events.append(TreeEvent(EventKind.CHANGED, op.path))
            return version + 1
        if isinstance(op, Delete):
            if op.path == "/" or self._has_children(op.path):
                raise NotEmpty(op.path)
            self._query(f"DELETE FROM {table} WHERE parent = ? AND name = ?", (parent, name))
            events.append(TreeEvent(EventKind.DELETED, op.path))
        return None

    def _create(self, op: Create) -> str:
        parent, name = split_path(op.path)
        parent_row = self._row(parent)
        if parent_row is None:
            raise NoNode(parent)
        if parent_row[3] == "ephemerals":
            raise TreeError(parent, f"an ephemeral node has no children: {parent}")
        if op.sequence:
            name = f"{name}{parent_row[2]:010d}"
            self._query(
                "UPDATE nodes SET next_sequence = next_sequence + 1 WHERE parent = ? AND name = ?",
                _key(parent),
            )
        path = _join(parent, name)
        if self._row(path) is not None:
            raise NodeExists(path)
        table = "ephemerals" if op.ephemeral else "nodes"
        self._last_created += 1
        self._query(
            f"INSERT INTO {table} VALUES (?, ?, ?, 0, 0, ?)", (parent, name, op.data, self._last_created)
        )
        return path

    def _expect(self, path: str, version: int) -> tuple[str, int]:
        row = self._row(path)
        if row is None:
            raise NoNode(path)
        if version not in (ANY_VERSION, row[1]):
            raise BadVersion(path, f"BadVersion: {path} is at version {row[1]}, not {version}")
        return row[3], row[1]

    def _has_children(self, path: str) -> bool:
        return bool(self._query("SELECT 1 FROM all_nodes WHERE parent = ? AND name <> '' LIMIT 1", (path,)))

    def _row(self, path: str) -> tuple[bytes, int, int, str, int] | None:
        """Data, version, next sequence, table and creation of a node."""
        check_path(path)
        rows: list[tuple[bytes, int, int, str, int]] = self._query(
            "SELECT data, version, next_sequence, home, created FROM all_nodes WHERE parent = ? AND name = ?",
            _key(path),
        )
        return rows[0] if rows else None

    def _query(self, sql: str, values: tuple[str | bytes | int, ...] = ()) -> list[Any]:
        try:
            return self._database.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            _refuse(self._file_path, error)


def open_store(directory: str) -> EmbeddedStore:
    """The store in `directory`, made if there is none.

    StoreError when the file is damaged, in use or not ours. A full or failing disk raises it later, from any call.
    """
    file_path = os.path.join(directory, FILE_NAME)
    try:
        if not os.path.exists(file_path):
            _make(file_path)
        _check_header(file_path)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{file_path} cannot be used: {error.strerror}") from error
    except sqlite3.DatabaseError as error:
        _refuse(file_path, error)
    database: sqlite3.Connection | None = None
    try:
        database = _connect(file_path)
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        database.execute("PRAGMA temp_store = MEMORY")
        complaint = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if complaint != "ok":
            raise sqlite3.DatabaseError(complaint.replace("\n", " "))
        openings = _count_opening(database)
        database.execute(f"CREATE TEMP TABLE ephemerals {_COLUMNS}")
        database.execute(
            "CREATE TEMP VIEW all_nodes AS SELECT parent, name, data, version, next_sequence, 'nodes' AS home,"
            " CASE name WHEN '' THEN 0 ELSE created END AS created FROM main.nodes UNION ALL"
            " SELECT parent, name, data, version, next_sequence, 'ephemerals', created FROM temp.ephemerals"
        )
    except sqlite3.DatabaseError as error:
        if database is not None:
            database.close()
        _refuse(file_path, error)
    return EmbeddedStore(database, file_path=file_path, last_created=openings << CREATIONS_BITS)


def _count_opening(database: sqlite3.Connection) -> int:
    """How often the file has been opened, this time included."""
    database.execute("BEGIN IMMEDIATE")
    if database.execute("PRAGMA user_version").fetchone()[0] < SCHEMA_VERSION:
        database.execute("ALTER TABLE nodes ADD COLUMN created INTEGER NOT NULL DEFAULT 0")
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    database.execute("UPDATE nodes SET created = created + 1 WHERE parent = '/' AND name = ''")
    (count,) = database.execute("SELECT created FROM nodes WHERE parent = '/' AND name = ''").fetchone()
    database.execute("COMMIT")
    return int(count)


def _connect(file_path: str) -> sqlite3.Connection:
    return sqlite3.connect(file_path, timeout=0, isolation_level=None, check_same_thread=False)


def _make(file_path: str) -> None:
    """Built aside and renamed, so that a crash leaves no half-made file for the next start to judge."""
    draft = file_path + ".new"
    for leftover in (draft, draft + "-journal"):
        if os.path.exists(leftover):
            os.unlink(leftover)
    # It holds the keys of users' logins. SQLite gives its other files the same mode.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    database = _connect(draft)
    try:
        database.execute("PRAGMA synchronous = OFF")
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        database.execute(f"CREATE TABLE nodes {_COLUMNS}")
        database.execute("INSERT INTO nodes VALUES ('/', '', x'', 0, 0, 0)")
    finally:
        database.close()
    _fsync(draft)
    os.rename(draft, file_path)
    _fsync(os.path.dirname(file_path) or ".")


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_header(file_path: str) -> None:
    """Judged from the bytes, before SQLite opens the file and perhaps repairs what is not ours to touch."""
    with open(file_path, "rb") as file:
        header = file.read(100)
    if header[:16] != b"SQLite format 3\x00" or len(header) < 100:
        raise StoreError(
            f"{file_path} is not a metadata store (not an SQLite file); move it away to start with an empty one"
        )
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise StoreError(f"{file_path} is not a metadata store (an SQLite file of another program)")
    version = int.from_bytes(header[60:64], "big")
    if not FIRST_SCHEMA_VERSION <= version <= SCHEMA_VERSION:
        raise StoreError(
            f"{file_path} has format {version}, and this Penstock reads format {SCHEMA_VERSION}:"
            " was it written by a newer one?"
        )


def _refuse(file_path: str, error: sqlite3.DatabaseError) -> NoReturn:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        raise StoreError(
            f"{file_path} is in use: is another broker running on this data directory?"
        ) from error
    raise StoreError(f"{file_path} cannot be used: {error}") from error


def _key(path: str) -> tuple[str, str]:
    return ("/", "") if path == "/" else split_path(path)


def _owner(home: str) -> int:
    return ONLY_SESSION if home == "ephemerals" else NOBODY


def _join(parent: str, name: str) -> str:
    return f"/{name}" if parent == "/" else f"{parent}/{name}"
