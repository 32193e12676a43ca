"""The SQLite file itself: what is damaged or foreign is left alone, and what was acknowledged stays."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.metadata.tree import Create, Delete, Set, TreeError, TreeOp
from penstock.stores.embedded import FILE_NAME, EmbeddedStore, StoreError, open_store


def filled(directory: Path) -> Path:
    async def fill() -> None:
        store = open_store(str(directory))
        await store.multi([Create("/a")] + [Create(f"/a/{n}", bytes(200)) for n in range(200)])
        await store.close()

    asyncio.run(fill())
    return directory / FILE_NAME


def test_opening_takes_milliseconds_of_computing(tmp_path: Path) -> None:
    filled(tmp_path)
    taken = []
    for _ in range(5):
        start = time.process_time()
        store = open_store(str(tmp_path))
        taken.append(time.process_time() - start)
        asyncio.run(store.close())
    assert min(taken) < 0.01


def test_a_clean_close_leaves_one_file(tmp_path: Path) -> None:
    filled(tmp_path)
    assert os.listdir(tmp_path) == [FILE_NAME]


def test_a_second_process_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    code = (
        "import sys\nfrom penstock.stores.embedded import *\n"
        "try: open_store(sys.argv[1])\nexcept StoreError as e: print(e)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert "is in use: is another broker running on this data directory?" in told
    asyncio.run(store.close())


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, signal, sys\nfrom penstock.stores.embedded import *\n"
        "async def go():\n"
        "    store = open_store(sys.argv[1])\n"
        "    await store.create('/a', b'one')\n"
        "    await store.create('/b', ephemeral=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(go())"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=30)
    assert ended.returncode == -signal.SIGKILL
    store = open_store(str(tmp_path))
    assert asyncio.run(store.children("/")) == ["a"]
    asyncio.run(store.close())


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, b"SQLite format 3\x00"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(StoreError, match="is not a metadata store") as caught:
        open_store(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert (tmp_path / FILE_NAME).read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE nodes (path TEXT)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="of another program"):
        open_store(str(tmp_path))
    assert path.read_bytes() == before


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(StoreError, match="has format 7"):
        open_store(str(tmp_path))


def test_a_file_of_the_first_format_is_brought_up_to_date(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE nodes DROP COLUMN created")
        database.execute("PRAGMA user_version = 1")
    database.close()

    async def use() -> tuple[int, int]:
        store = open_store(str(tmp_path))
        await store.create("/b")
        old, new = await store.get("/a/199"), await store.get("/b")
        await store.close()
        return old.created, new.created

    old, new = asyncio.run(use())
    assert old == 0 < new


@pytest.mark.parametrize("damage", ["garbage", "cut"])
def test_a_damaged_file_is_refused_with_one_line_and_left_alone(tmp_path: Path, damage: str) -> None:
    path = filled(tmp_path)
    content = path.read_bytes()
    half = len(content) // 2
    damaged = content[:4096] + b"\xff" * (len(content) - 4096) if damage == "garbage" else content[:half]
    path.write_bytes(damaged)
    with pytest.raises(StoreError) as caught:
        open_store(str(tmp_path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == damaged


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="none"):
        open_store(str(tmp_path / "none"))


async def pragma(store: EmbeddedStore, text: str) -> tuple[int]:
    found: tuple[int] = await asyncio.to_thread(lambda: store._database.execute(f"PRAGMA {text}").fetchone())
    return found


def test_a_full_disk_is_a_fault_of_the_disk_and_leaves_the_tree_as_it_was(tmp_path: Path) -> None:
    async def fill() -> None:
        store = open_store(str(tmp_path))
        await store.create("/a")
        (pages,) = await pragma(store, "page_count")
        await pragma(store, f"max_page_count = {pages + 3}")
        with pytest.raises(StoreError, match="full") as caught:
            await store.multi([Create(f"/a/{number}", bytes(4000)) for number in range(10)])
        assert isinstance(caught.value, OSError)
        assert await store.children("/a") == []
        await pragma(store, f"max_page_count = {pages + 100}")
        await store.create("/a/b")
        await store.close()

    asyncio.run(fill())


def test_no_call_waits_on_the_loop_and_each_sees_what_was_asked_for_before_it(tmp_path: Path) -> None:
    """That none waits is held by the law under which this room stands."""

    async def use() -> None:
        store = open_store(str(tmp_path))
        calls = [
            store.create("/a", b"0"),
            store.create("/b", ephemeral=True),
            *(store.set("/a", b"%d" % number) for number in range(1, 20)),
            store.get("/a"),
            store.multi([Create("/a/x"), Delete("/b")]),
            store.children("/a"),
            store.exists("/b"),
            store.delete("/a/x"),
            store.subtree("/"),
        ]
        results = await asyncio.gather(*calls)
        assert results[2:21] == list(range(1, 20))
        assert (results[21].data, results[21].version) == (b"19", 19)
        assert results[23:25] == [["x"], False]
        assert results[26].keys() == {"/", "/a"}
        await store.close()

    asyncio.run(use())


def test_a_write_whose_caller_is_cancelled_is_done_and_told(tmp_path: Path) -> None:
    async def use() -> None:
        store = open_store(str(tmp_path))
        told = asyncio.Event()
        store.watch("/", lambda event: told.set())
        writing = asyncio.create_task(store.create("/a"))
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait_for(told.wait(), 10)
        assert await store.exists("/a")
        await store.close()

    asyncio.run(use())


def test_closing_waits_for_what_was_begun(tmp_path: Path) -> None:
    async def use() -> list[str]:
        store = open_store(str(tmp_path))
        writing = [asyncio.create_task(store.create(f"/{number}")) for number in range(5)]
        await asyncio.sleep(0)
        await store.close()
        return await asyncio.gather(*writing)

    assert asyncio.run(use()) == ["/0", "/1", "/2", "/3", "/4"]


PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/1"])
OPS = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=3), st.just(False), st.just(False)),
    st.builds(Set, PATHS, st.binary(max_size=3), st.sampled_from([-1, 0, 1])),
    st.builds(Delete, PATHS, st.sampled_from([-1, 0, 1])),
)


def expected(model: dict[str, tuple[bytes, int]], ops: list[TreeOp]) -> dict[str, tuple[bytes, int]] | None:
    """The tree after the ops as a plain dictionary, None when one of them cannot be."""
    after = dict(model)
    for op in ops:
        if isinstance(op, Create):
            if op.path in after or (op.path.rpartition("/")[0] or "/") not in after:
                return None
            after[op.path] = (op.data, 0)
            continue
        if op.path not in after or op.version not in (-1, after[op.path][1]):
            return None
        if isinstance(op, Set):
            after[op.path] = (op.data, after[op.path][1] + 1)
        else:
            if any(path.startswith(op.path + "/") for path in after):
                return None
            del after[op.path]
    return after


@settings(max_examples=30)
@given(st.lists(st.one_of(st.none(), st.lists(OPS, min_size=1, max_size=4)), max_size=15))
def test_any_sequence_of_multis_and_restarts_is_like_a_dictionary(steps: list[list[TreeOp] | None]) -> None:
    async def go(directory: str) -> None:
        model: dict[str, tuple[bytes, int]] = {"/": (b"", 0)}
        store: EmbeddedStore = open_store(directory)
        for ops in steps:
            if ops is None:
                await store.close()
                store = open_store(directory)
                continue
            after = expected(model, ops)
            try:
                await store.multi(ops)
            except TreeError:
                assert after is None
            else:
                assert after is not None
                model = after
            assert {p: (node.data, node.version) for p, node in (await store.subtree("/")).items()} == model
        await store.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(go(directory))
