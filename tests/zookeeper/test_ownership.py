"""zookeeper-security-migration: the nodes of a cluster that was open are given to the brokers' login, and given back."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.zookeeper import ZooKeeperServer

BIN = Path(__file__).resolve().parents[2] / "bin"
WAIT_S = 60
LOGIN = "penstock.zookeeper.auth=brokers:z-secret\n"
OTHERS = "/of-somebody-else"


def migrate(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "zookeeper-security-migration.sh", *words],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


@contextmanager
def stranger(server: ZooKeeperServer, chroot: str = "") -> Iterator[KazooClient]:
    client = KazooClient(f"{server.address}{chroot}")
    client.start(WAIT_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def nodes(client: KazooClient, path: str = "/") -> Iterator[str]:
    yield path
    for name in client.get_children(path):
        below = f"{path.rstrip('/')}/{name}"
        if below not in ("/zookeeper", "/consumers", OTHERS):
            yield from nodes(client, below)


@pytest.mark.parametrize("chroot", ["", "/kafka"], ids=["at the root", "below a path"])
def test_nodes_that_were_open_belong_to_the_brokers_and_are_open_again(tmp_path: Path, chroot: str) -> None:
    login = tmp_path / "zookeeper.properties"
    login.write_text(LOGIN)
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        address = f"{server.address}{chroot}"
        connects = {1: address}
        with PenstockCluster(tmp_path, brokers=1, zookeeper=server, zookeeper_connect_of=connects):
            pass
        with stranger(server, chroot) as client:
            client.create(OTHERS, b"")
            client.ensure_path("/config/users/ana")
            client.ensure_path("/brokers/topics/orders/partitions/0/state")
            everything = list(nodes(client))
            assert len(everything) > 20
        at = ("--zookeeper.connect", address, "--zk-tls-config-file", str(login))
        done = migrate("--zookeeper.acl=secure", "--enable.path.check", *at)
        assert (done.returncode, done.stderr) == (0, "")
        said = f"The ACLs of {len(everything)} nodes are set: only the brokers' login may change them.\n"
        assert done.stdout == said
        with stranger(server, chroot) as client:
            for path in everything:
                with pytest.raises(NoAuthError):
                    client.set(path, b"mine")
                with pytest.raises(NoAuthError):
                    client.create(f"{path.rstrip('/')}/mine", b"")
            with pytest.raises(NoAuthError):
                client.get("/config/users/ana")
            assert client.get("/brokers/topics/orders")
            for path in ("/consumers", OTHERS):
                client.set(path, b"still mine")
        assert migrate("--zookeeper.acl", "secure", *at).stdout == said, "as often as one likes"
        another = tmp_path / "another.properties"
        another.write_text(LOGIN.replace("z-secret", "guess"))
        refused = migrate("--zookeeper.acl", "unsecure", *at[:-1], str(another))
        assert refused.returncode == 1
        assert "belongs to another user" in refused.stderr
        assert refused.stderr.count("\n") == 1
        done = migrate("--zookeeper.acl", "unsecure", *at)
        assert (done.returncode, done.stderr) == (0, "")
        with stranger(server, chroot) as client:
            for path in everything:
                client.get(path)
            client.set("/config/users/ana", b"{}")


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    login = tmp_path / "zookeeper.properties"
    login.write_text(LOGIN)
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        at = ("--zookeeper.connect", server.address)
        nobody = migrate("--zookeeper.acl=secure", *at)
        assert nobody.returncode == 1
        assert nobody.stderr.startswith("zookeeper-security-migration: no login for ZooKeeper")
        empty = migrate(
            "--zookeeper.acl=secure", "--enable.path.check", *at, "--zk-tls-config-file", str(login)
        )
        assert (empty.returncode, empty.stderr) == (
            1,
            f"zookeeper-security-migration: ZooKeeper at {server.address} has no cluster: "
            "/brokers, /config is not there\n",
        )
        elsewhere = migrate(
            "--zookeeper.acl=secure", "--zookeeper.connect", f"{server.address}/nowhere",
            "--zk-tls-config-file", str(login),
        )  # fmt: skip
        assert (elsewhere.returncode, elsewhere.stderr.count("\n")) == (1, 1)
        assert "/nowhere is not in ZooKeeper" in elsewhere.stderr
        with stranger(server) as client:
            client.create("/mine", b"")  # nothing was changed
    unknown = migrate("--zookeeper.acl=closed")
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("--zookeeper.acl must be secure or unsecure, not 'closed'\n")
