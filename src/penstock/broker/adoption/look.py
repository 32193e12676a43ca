"""`penstock join`: looks at a cluster of Apache Kafka with the configuration of the broker that is to join it."""

import asyncio
from collections.abc import Mapping
from typing import Final

from penstock.broker.adoption.asking import members_asked
from penstock.broker.adoption.joining import Finding, findings
from penstock.broker.process import zookeeper_options
from penstock.broker.serving import StartError
from penstock.config.layers import BrokerConfig
from penstock.config.loading import load
from penstock.config.option import ConfigError
from penstock.metadata.tree import TreeError
from penstock.metadata.znodes import BadNode
from penstock.model.endpoints import Endpoint
from penstock.net.endpoints import parse_endpoints
from penstock.runtime.files import OsDisk
from penstock.storage import meta_properties
from penstock.storage.meta_properties import LogDirectoryError

LOOK_SECONDS: Final = 60.0


def look(properties: Mapping[str, str], sets: Mapping[str, str]) -> list[Finding]:
    """StartError where the configuration is none, or nobody answers. Nothing is written, on this machine either."""
    given = {**properties, **sets}
    try:
        config, _ = load(dict(properties), dict(sets))
    except (ConfigError, ValueError) as error:
        raise StartError(str(error)) from None
    if not config.get("zookeeper.connect"):
        mode = "is for KRaft (process.roles)" if "process.roles" in given else "has no zookeeper.connect"
        raise StartError(
            f"the configuration {mode}: a broker joins clusters in ZooKeeper mode only; "
            "move one in KRaft mode by penstock migrate"
        )
    if not given.keys() & {"broker.id", "node.id"}:
        raise StartError("the configuration has no broker.id: give this broker a number that no other has")
    try:
        return asyncio.run(_look(config))
    except (LogDirectoryError, ValueError) as error:
        raise StartError(str(error)) from None
    except BadNode as error:
        raise StartError(f"cannot read the cluster's metadata: {error}") from None
    except TreeError as error:
        raise StartError(str(error)) from None
    except TimeoutError:
        raise StartError(f"no answer within {LOOK_SECONDS:g} s") from None


async def _look(config: BrokerConfig) -> list[Finding]:
    from penstock.stores.zookeeper import ZooKeeperStore

    loop = asyncio.get_running_loop()
    store = ZooKeeperStore(zookeeper_options(config), loop)
    try:
        async with asyncio.timeout(LOOK_SECONDS), members_asked(config, loop) as ask:
            await store.reconnect()
            return await findings(
                config, store, ask, known_cluster_id=_cluster_id(config), own_endpoints=_endpoints(config)
            )
    finally:
        await store.close()


def _cluster_id(config: BrokerConfig) -> str | None:
    disk = OsDisk()
    for directory in config.log_dirs:
        found = meta_properties.read(disk, directory).get("cluster.id")
        if found is not None:
            return found
    return None


def _endpoints(config: BrokerConfig) -> dict[str, Endpoint]:
    texts = config.advertised_listeners or config.listeners
    return {each.listener: each for each in parse_endpoints(",".join(texts), "listeners")}
