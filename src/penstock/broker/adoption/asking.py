"""Members of a cluster, asked by a broker that is not one yet: as `net.peers` does, with the logins of its own configuration."""

from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from penstock.broker.access.inter_broker import inter_broker_listener
from penstock.broker.access.listener_tls import ListenerTls
from penstock.broker.access.peer_access import secured_connect
from penstock.broker.adoption.joining import Ask
from penstock.config.layers import BrokerConfig
from penstock.metadata.image import BrokerRegistration
from penstock.net.peers import Peers, PeerUnavailable
from penstock.runtime.pools import Pools

if TYPE_CHECKING:
    from penstock.net.peers import Connect

ASK_SECONDS: Final = 5.0


@asynccontextmanager
async def members_asked(
    config: BrokerConfig, loop: AbstractEventLoop, connect: "Connect | None" = None
) -> AsyncIterator[Ask]:
    """ValueError, which names the option, where members cannot be entered as this configuration says."""
    client_id = f"broker-{config.node_id}"
    if connect is None:
        pools = Pools(loop)
        connect = secured_connect(config, pools, client_id, ListenerTls(config, loop, pools).to_brokers)
    peers = Peers(loop, client_id, connect)
    listener = inter_broker_listener(config)

    async def ask(member: BrokerRegistration, request: Any, response: Any, version: int) -> Any:
        endpoint = member.endpoints.get(listener)
        if endpoint is None:
            raise PeerUnavailable(f"broker {member.id} has no listener {listener}")
        peers.set_address(member.id, endpoint.host, endpoint.port)
        return await peers.ask(member.id, request, response, version=version, timeout_s=ASK_SECONDS)

    try:
        yield ask
    finally:
        peers.close()
