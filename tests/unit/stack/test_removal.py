"""penstock down --volumes removes what the stack made, and nothing else."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from penstock.client.errors import UserError
from penstock.stack.composition import ServiceWish, Wish, compose
from penstock.stack.removal import Removal
from penstock.stack.services import SERVICES
from penstock.stack.stack import Stack
from penstock.stack.stack_file import write_stack

KEPT = (
    "zookeeper/zoo.cfg", "zookeeper/data/version-2/log.1", "zookeeper/data/myid", "broker-1/meta.properties", "broker-1/.lock",
    "broker-1/recovery-point-offset-checkpoint", "broker-1/orders-0/00000000000000000000.log",
    "broker-1/orders-0/partition.metadata", "broker-1/orders-1.ab12-delete/00000000000000000007.index",
    "broker-1/penstock-session", "registry/registry.properties", "registry.log", "broker-1.log", "broker-1.pid", "box.lock",
    "contents.json", "broker-1.secrets.properties",
)  # fmt: skip


def stack_with(directory: Path, files: tuple[str, ...] = KEPT) -> Stack:
    directory.mkdir()
    made = compose(directory, None, Wish({"registry": ServiceWish(count=1)}), SERVICES)
    write_stack(made)
    for name in files:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("kept")
    return made


def test_a_stack_that_holds_nothing_else_is_gone_with_its_folder(tmp_path: Path) -> None:
    stack = stack_with(tmp_path / "box")
    assert "zookeeper, broker-1, registry" in Removal(stack).summary
    assert list(Removal(stack).run()) == [f"{stack.directory} is removed"]
    assert list(tmp_path.iterdir()) == []


def test_files_and_folders_that_are_not_the_stacks_stay_and_are_told(tmp_path: Path) -> None:
    mine = (
        "notes.txt", "broker-1/thesis.doc", "broker-1/orders-0/thesis.doc", "broker-1/backup/00000000000000000000.log",
        "broker-7/orders-0/00000000000000000000.log", "registry/schemas.zip", "zookeeper/data/version-2/deep/snapshot.0",
    )  # fmt: skip
    stack = stack_with(tmp_path / "box", (*KEPT, *mine))
    (stack.directory / "empty").mkdir()
    (stack.directory / "broker-1" / "empty").mkdir()
    (told,) = Removal(stack).run()
    assert "what is not its own stays: " in told
    assert str(stack.directory / "notes.txt") in told or "…" in told
    left = {str(path.relative_to(stack.directory)) for path in stack.directory.rglob("*") if path.is_file()}
    assert left == set(mine)
    assert (stack.directory / "empty").is_dir()
    assert (stack.directory / "broker-1" / "empty").is_dir()


def test_nothing_goes_while_a_broker_works_on_it_that_the_stack_does_not_know(tmp_path: Path) -> None:
    stack = stack_with(tmp_path / "box")
    before = sorted(stack.directory.rglob("*"))
    with (stack.directory / "broker-1" / ".lock").open() as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(UserError, match=r"broker-1 is held by a broker that runs.*nothing is removed"):
            list(Removal(stack).run())
    assert sorted(stack.directory.rglob("*")) == before
    assert list(Removal(stack).run()) == [f"{stack.directory} is removed"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    stack = stack_with(tmp_path / "box")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "orders-3").mkdir(parents=True)
    precious = elsewhere / "orders-3" / "00000000000000000000.log"
    precious.write_text("precious")
    (stack.directory / "broker-1" / "orders-3").symlink_to(elsewhere / "orders-3")
    (stack.directory / "broker-1" / "orders-0" / "00000000000000000009.log").symlink_to(precious)
    list(Removal(stack).run())
    assert precious.read_text() == "precious"
    assert (stack.directory / "broker-1" / "orders-3").is_symlink()


def test_a_folder_that_is_a_link_is_somebody_elses(tmp_path: Path) -> None:
    files = tuple(name for name in KEPT if not name.startswith("broker-1/"))
    stack = stack_with(tmp_path / "box", files)
    disk = tmp_path / "disk"
    disk.mkdir()
    (disk / "meta.properties").write_text("kept")
    (stack.directory / "broker-1").symlink_to(disk)
    (told,) = Removal(stack).run()
    assert told.endswith(f"stays: {stack.directory / 'broker-1'}")
    assert (disk / "meta.properties").exists()
