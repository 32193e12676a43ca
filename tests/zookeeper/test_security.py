"""ZooKeeper over TLS and with logins by SASL: a real server, with its own word on who we are."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.metadata.tree import SessionLost, StoreUnavailable, TreeEvent
from penstock.stack.certificates import Authority
from penstock.stores.zookeeper import ZooKeeperOptions, ZooKeeperStore, open_store
from penstock.stores.zookeeper_security import security_of
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_port
from penstock.testing.zookeeper import FAST_DISK, ZooKeeperServer
from tests.zookeeper.waiting import until

BIN = Path(__file__).resolve().parents[2] / "bin"
PASSWORD = "changeit"
JAAS = 'org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="s3 \\"cret";'


class SecuredServer:
    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory / "certificates")
        self.port = free_port()
        jaas = directory / "jaas.conf"
        module = "org.apache.zookeeper.server.auth.DigestLoginModule"
        jaas.write_text(f'Server {{ {module} required user_kafka="s3 \\"cret"; }};\n')
        properties = {
            "zookeeper.serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "zookeeper.ssl.keyStore.location": str(self.authority.issue("server").pkcs12(PASSWORD)),
            "zookeeper.ssl.keyStore.password": PASSWORD,
            "zookeeper.ssl.keyStore.type": "PKCS12",
            "zookeeper.ssl.trustStore.location": str(self.authority.path),
            "zookeeper.ssl.trustStore.type": "PEM",
            "zookeeper.authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "java.security.auth.login.config": str(jaas),
        }
        self.server = ZooKeeperServer(
            directory / "data",
            more=[f"secureClientPort={self.port}"],
            properties=[*FAST_DISK, *(f"-D{name}={value}" for name, value in properties.items())],
        )
        self.tls_address = f"127.0.0.1:{self.port}"

    def tls(self, **more: str) -> dict[str, str]:
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.ssl.truststore.location": str(self.authority.path),
            "zookeeper.ssl.keystore.location": str(self.authority.issue("broker").pem()),
        } | {f"zookeeper.ssl.{name.replace('_', '.')}": value for name, value in more.items()}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    running = SecuredServer(tmp_path_factory.mktemp("secured"))
    yield running
    running.server.stop()


async def opened(
    address: str, given: dict[str, str], *, set_acl: bool = False, session_ms: int = 6_000
) -> ZooKeeperStore:
    security = security_of(given, {})
    return await open_store(
        ZooKeeperOptions(address, session_ms, set_acl=set_acl, security=security, timeout_s=20)
    )


@pytest.mark.parametrize("store", ["pem", "pkcs12"])
def test_a_tree_over_tls_is_read_written_and_watched(secured: SecuredServer, store: str) -> None:
    given = secured.tls()
    if store == "pkcs12":
        given["zookeeper.ssl.keystore.location"] = str(secured.authority.issue("b2").pkcs12(PASSWORD))
        given["zookeeper.ssl.keystore.password"] = PASSWORD

    async def go() -> None:
        tree = await opened(f"{secured.tls_address}/{store}", given)
        seen: list[TreeEvent] = []
        tree.watch("/a", seen.append)
        await tree.create("/a", b"x" * 500_000)
        assert (await tree.get("/a")).data == b"x" * 500_000
        await until(lambda: bool(seen))
        await tree.close()

    asyncio.run(go())


def test_a_session_over_tls_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    secured = SecuredServer(tmp_path)

    async def go() -> None:
        tree = await opened(
            secured.tls_address,
            secured.tls() | {"penstock.zookeeper.sasl.jaas.config": JAAS},
            set_acl=True,
            session_ms=30_000,
        )
        await tree.create("/mine", ephemeral=True)
        session = tree.session_id
        secured.server.kill()
        secured.server.start()
        assert await tree.exists("/mine")
        await tree.create("/more")  # logged in again: else it would have no creator to name
        assert tree.session_id == session
        await tree.close()
        with pytest.raises(SessionLost):
            await tree.get("/mine")

    try:
        asyncio.run(go())
    finally:
        secured.server.kill()


def test_what_is_wrong_with_tls_is_said_in_one_line(secured: SecuredServer, tmp_path: Path) -> None:
    stranger = str(Authority(tmp_path).path)
    plain, tls = secured.server.address, secured.tls_address
    cases = [
        (tls, secured.tls(truststore_location=stranger), "its certificate is not accepted: .*certificate"),
        (tls, {**secured.tls(), "zookeeper.ssl.keystore.location": ""}, "certificate"),
        (plain, secured.tls(), "TLS"),
        (tls, {}, r"is that a port for TLS \(zookeeper.ssl.client.enable\)"),
    ]

    async def go() -> None:
        for address, given, words in cases:
            with pytest.raises(StoreUnavailable, match=words) as failure:
                await opened(address, {name: text for name, text in given.items() if text}, session_ms=2_000)
            assert "\n" not in str(failure.value)

    asyncio.run(go())


def test_the_host_name_is_checked_unless_that_is_off(secured: SecuredServer) -> None:
    address = f"localhost:{secured.port}"  # a name that its certificate does not have

    async def go() -> None:
        with pytest.raises(StoreUnavailable, match=r"not valid for 'localhost' .*identification\.algorithm"):
            await opened(address, secured.tls(), session_ms=2_000)
        off = secured.tls(endpoint_identification_algorithm="")
        await (await opened(address, off)).close()

    asyncio.run(go())


def test_brokers_and_tools_find_one_another_by_it(secured: SecuredServer, tmp_path: Path) -> None:
    address = f"{secured.tls_address}/cluster"
    entering = secured.tls()
    with PenstockCluster(
        tmp_path,
        brokers=2,
        zookeeper=secured.server,
        zookeeper_connect_of={1: address, 2: address},
        options={**entering, "penstock.zookeeper.sasl.jaas.config": JAAS, "zookeeper.set.acl": "true"},
    ) as cluster:
        file = tmp_path / "zookeeper.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in entering.items()))
        words = ["--zookeeper", address, "--zk-tls-config-file", str(file), "--describe"]
        done = subprocess.run(
            [BIN / "kafka-configs", *words, "--entity-type", "brokers", "--entity-name", "1"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "Dynamic configs for broker 1" in done.stdout
        for broker_id in (1, 2):
            assert "cret" not in cluster.log_text(broker_id)


def test_a_login_by_sasl_owns_what_it_makes(secured: SecuredServer) -> None:
    given = {"penstock.zookeeper.sasl.jaas.config": JAAS}

    async def go() -> None:
        tree = await opened(f"{secured.server.address}/sasl", given, set_acl=True)
        await tree.create("/config")
        await tree.create("/config/users", b"secret")
        await tree.close()
        stranger = await opened(f"{secured.server.address}/sasl", {})
        assert await stranger.exists("/config")
        for attempt in (stranger.set("/config", b""), stranger.get("/config/users")):
            with pytest.raises(Exception, match="belongs to another user"):
                await attempt
        await stranger.close()
        again = await opened(f"{secured.server.address}/sasl", given, set_acl=True)
        assert (await again.get("/config/users")).data == b"secret"
        await again.close()

    asyncio.run(go())


@pytest.mark.parametrize("wrong", ["password", "name"])
def test_a_wrong_login_by_sasl_is_refused_in_one_line(secured: SecuredServer, wrong: str) -> None:
    jaas = JAAS.replace("s3", "s4") if wrong == "password" else JAAS.replace('"kafka"', '"eve"')

    async def go() -> None:
        with pytest.raises(StoreUnavailable, match=r"login .*by SASL") as failure:
            await opened(
                secured.server.address, {"penstock.zookeeper.sasl.jaas.config": jaas}, session_ms=2_000
            )
        assert "cret" not in str(failure.value)

    asyncio.run(go())
