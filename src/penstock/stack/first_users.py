"""Users written straight into a cluster's metadata: where nobody can log in yet, nobody can ask a broker for the first one.

The metadata are ZooKeeper's, whose brokers hear of a change at once if they run; or the file of a broker that is its own cluster
and does not run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Sequence

from penstock.admin.users import upsertion
from penstock.broker.process import zookeeper_options
from penstock.broker.serving import DEFAULT_DATA
from penstock.client.error_names import refused
from penstock.client.errors import UserError
from penstock.config.layers import BrokerConfig
from penstock.controller.scram_credentials import alter_scram_credentials
from penstock.metadata import znodes
from penstock.metadata.image import USERS, ClusterImage, ConfigsChanged
from penstock.metadata.tree import MetadataTree, NodeExists, NoNode, StoreUnavailable, TreeError
from penstock.security.scram import DEFAULT_ITERATIONS
from penstock.stores import embedded
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)

MECHANISM = "SCRAM-SHA-512"
PARENTS = (znodes.CONFIG, znodes.CONFIG_CHANGES, f"{znodes.CONFIG}/users")


def write_user(
    config: BrokerConfig,
    name: str,
    password: str,
    *,
    mechanism: str = MECHANISM,
    iterations: int = DEFAULT_ITERATIONS,
) -> None:
    """Makes the user, or gives it another password. `config` is that of a broker of the cluster; UserError."""
    write_users(config, [upsertion(name, password, mechanism=mechanism, iterations=iterations)])


def write_users(
    config: BrokerConfig, users: Sequence[ScramCredentialUpsertion], *, kept: Collection[str] = ()
) -> None:
    """`kept` are names of users that stay as they are where they are there already."""
    try:
        asyncio.run(_write(config, users, kept))
    except StoreUnavailable as error:
        raise UserError(str(error)) from None
    except (TreeError, znodes.BadNode, OSError) as error:
        raise UserError(f"cannot write the cluster's metadata: {error}") from None


async def _write(
    config: BrokerConfig, users: Sequence[ScramCredentialUpsertion], kept: Collection[str]
) -> None:
    tree = await _open(config)
    try:
        await _make_parents(tree)
        image = await _image(tree, [user.name for user in users])
        wanted = [
            user for user in users if user.name not in kept or not image.has_config_node(USERS, user.name)
        ]
        decision = alter_scram_credentials(
            image,
            AlterUserScramCredentialsRequest(upsertions=wanted),
            notify=bool(config.get("zookeeper.connect")),
        )
        for result in decision.results:
            if result.error_code:
                raise refused(result.error_code, result.error_message)
        if decision.ops:
            await tree.multi(decision.ops)
    finally:
        await tree.close()


async def _open(config: BrokerConfig) -> MetadataTree:
    if config.get("zookeeper.connect"):
        from penstock.stores.zookeeper import open_store

        return await open_store(zookeeper_options(config))
    is_set = config.is_set("log.dirs") or config.is_set("log.dir")
    directories = config.log_dirs if is_set else [DEFAULT_DATA]
    directory = next(
        (path for path in directories if os.path.exists(os.path.join(path, embedded.FILE_NAME))),
        directories[0],
    )
    os.makedirs(directory, exist_ok=True)
    return embedded.open_store(directory)


async def _make_parents(tree: MetadataTree) -> None:
    """The broker makes whatever else is missing when it starts, and the cluster's id."""
    for path in PARENTS:
        try:
            await tree.create(path)
        except NodeExists:
            continue


async def _image(tree: MetadataTree, names: Sequence[str]) -> ClusterImage:
    """What it knows is these users."""
    image = ClusterImage()
    for name in names:
        path = znodes.user_config_path(name)
        try:
            node = await tree.get(path)
        except NoNode:
            continue
        image.apply(ConfigsChanged(USERS, name, znodes.decode_config(path, node.data)))
    return image
