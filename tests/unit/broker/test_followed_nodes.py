"""Nodes that every broker reads for itself: what was removed while nobody told of it is noticed, too."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

from penstock.broker.cluster.followed_nodes import FollowedNodes
from penstock.broker.cluster.shared_acls import SharedAcls
from penstock.broker.cluster.shared_configs import SharedConfigs
from penstock.broker.cluster.shared_tokens import SharedTokens
from penstock.metadata.acl_nodes import acl_path, encode_rules
from penstock.metadata.image import (
    CLIENTS,
    TOPICS,
    USER_CLIENTS,
    USERS,
)
from penstock.metadata.load import load_image, prepare_tree
from penstock.metadata.znodes import config_path, encode_config, encode_token, token_path
from penstock.model.acl import Operation, Pattern, Permission, ResourceType, Rule
from penstock.model.tokens import DelegationToken
from penstock.stores.embedded import open_store

PATTERN = Pattern(ResourceType.TOPIC, "orders")
RULE = Rule("User:ana", "*", Operation.READ, Permission.ALLOW)
TOKEN = DelegationToken("id", "User:ana", "User:ana", (), issued_ms=0, max_ms=2, expires_ms=1)
CONFIGS = {
    (TOPICS, "orders"): {"retention.ms": "1"},
    (USERS, "ana"): {"SCRAM-SHA-256": "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=4096"},
    (CLIENTS, "a client"): {"producer_byte_rate": "1"},
    (USER_CLIENTS, "ana/clients/a%20client"): {"consumer_byte_rate": "1"},
}
EVERYTHING = {
    **{config_path(*of): encode_config(values) for of, values in CONFIGS.items()},
    acl_path(PATTERN): encode_rules((RULE,)),
    token_path("id"): encode_token(TOKEN),
}


async def look(followed: FollowedNodes) -> None:
    followed.look_at_all()
    following = asyncio.get_running_loop().create_task(followed.follow())
    async with asyncio.timeout(60):
        while followed._changed or followed._wake.is_set() or not followed._wake._waiters:
            await asyncio.sleep(0)
        following.cancel()


def test_what_was_removed_while_nobody_told_of_it_is_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = open_store(str(tmp_path))
        try:
            await prepare_tree(store, new_cluster_id="a-cluster")
            for parent in (config_path(USERS, "ana"), f"{config_path(USERS, 'ana')}/clients"):
                await store.create(parent)
            for path, data in EVERYTHING.items():
                await (
                    store.set(path, data) if path == config_path(USERS, "ana") else store.create(path, data)
                )
            image = await load_image(store)
            assert {(kind, name) for kind, named in image.configs.items() for name in named} == set(CONFIGS)
            assert image.acls
            assert image.tokens
            for path in reversed(EVERYTHING):
                if path == config_path(USERS, "ana"):
                    await store.delete(f"{path}/clients")
                await store.delete(path)
            node = SimpleNamespace(image=image, effects=SimpleNamespace(apply=image.apply))
            for kind in (SharedConfigs, SharedAcls, SharedTokens):
                await look(kind(node, store))
            assert not any(image.configs.values())
            assert not image.acls
            assert not image.tokens
        finally:
            await store.close()

    asyncio.run(scenario())
