"""Decoys of a broker follow the users of its cluster."""

import asyncio
import secrets
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.access import logins
from penstock.broker.access.decoys import Decoys
from penstock.config.loading import load
from penstock.metadata import znodes
from penstock.metadata.image import USERS, ClusterImage, ConfigsChanged
from penstock.metadata.load import shared_key
from penstock.security.scram import Credential, credential_of, parse_credential, salted
from penstock.stores.embedded import open_store
from penstock.stores.zookeeper_requests import SENSITIVE_PATHS

MECHANISM = "SCRAM-SHA-512"


def credential(iterations: int, salt_bytes: int) -> str:
    salt = bytes(salt_bytes)
    hashed = salted(MECHANISM, "pencil", salt=salt, iterations=iterations)
    return str(credential_of(MECHANISM, hashed, salt=salt, iterations=iterations))


def test_decoys_look_like_the_users_that_there_are() -> None:
    image = ClusterImage()
    decoys = Decoys(SimpleNamespace(image=image, tokens=None))  # type: ignore[arg-type]

    def change(name: str, values: dict[str, str]) -> None:
        changed = ConfigsChanged(USERS, name, values)
        image.apply(changed)
        decoys.user_changed(changed)

    def seen() -> tuple[int, int]:
        made = decoys.of(MECHANISM, "nobody", is_token=False)
        return made.iterations, len(made.salt)

    change("ana", {MECHANISM: credential(4096, 64), "producer_byte_rate": "1"})
    assert seen() == (4096, 64)
    change("ana", {MECHANISM: credential(5000, 16)})
    assert seen() == (5000, 16)
    change("bob", {"SCRAM-SHA-256": credential(4096, 64), "producer_byte_rate": "1"})
    assert seen() == (5000, 16)
    change("ana", {})
    assert seen() == (8192, 24)


def test_the_users_are_looked_through_at_the_start() -> None:
    """Not at the first name that nobody has, which would take longer then."""
    image = ClusterImage()
    image.apply(ConfigsChanged(USERS, "ana", {MECHANISM: credential(4096, 64)}))
    decoys = Decoys(SimpleNamespace(image=image, tokens=None))  # type: ignore[arg-type]
    decoys.learn(b"k" * 32)
    image.configs.clear()  # whoever looks now finds nobody
    made = decoys.of(MECHANISM, "nobody", is_token=False)
    assert (made.iterations, len(made.salt)) == (4096, 64)


def test_a_name_that_is_known_and_one_that_is_not_cost_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    image = ClusterImage()
    image.apply(ConfigsChanged(USERS, "ana", {MECHANISM: credential(4096, 64)}))
    done: list[str] = []
    parse = parse_credential

    def parsing(text: str) -> Credential:
        done.append("parse")
        return parse(text)

    class Noted(Decoys):
        def of(self, mechanism: str, name: str, *, is_token: bool) -> Credential:
            done.append("make up")
            return super().of(mechanism, name, is_token=is_token)

    monkeypatch.setattr(logins, "parse_credential", parsing)
    config, _ = load({"sasl.enabled.mechanisms": MECHANISM}, {})
    node: Any = SimpleNamespace(image=image, config=config, tokens=None)
    node.decoys = Noted(node)
    listener = logins.ListenerLogins(node, "OUTSIDE", lambda *_: None, Any)  # type: ignore[arg-type]
    work = []
    for name in ("ana", "nobody"):
        done.clear()
        listener.mechanisms[MECHANISM]().step(f"n,,n={name},r=fyko".encode())
        work.append(list(done))
    assert work == [["parse", "make up"]] * 2


def test_brokers_of_a_cluster_share_a_key_that_lasts(tmp_path: Any) -> None:
    async def go() -> None:
        tree = open_store(str(tmp_path))
        await tree.create("/brokers", b"")

        class Slow:
            """Lets the others look before it writes."""

            def __getattr__(self, name: str) -> object:
                return getattr(tree, name)

            async def create(self, path: str, data: bytes) -> object:
                await asyncio.sleep(0)
                return await tree.create(path, data)

        slow: Any = Slow()
        keys = await asyncio.gather(*(shared_key(slow, new_key=secrets.token_bytes(32)) for _ in range(3)))
        assert set(keys) == {await shared_key(tree, new_key=b"")}
        assert len(keys[0]) == 32
        await tree.close()

    asyncio.run(go())


def test_nobody_but_brokers_reads_the_key() -> None:
    assert znodes.SHARED_KEY.startswith(SENSITIVE_PATHS)
