"""What a listener may take in: from the options of the broker and of the listener, asked for with each connection."""

from typing import Final

from penstock.broker.access.inter_broker import inter_broker_listener
from penstock.broker.quotas.named_addresses import NamedAddresses
from penstock.config.layers import BrokerConfig
from penstock.net.admission import UNLIMITED
from penstock.net.listener import ListenLimits

LOGIN_SECONDS: Final = 60.0
"""For a login. Kafka has no bound of its own for that, only connections.max.idle.ms, which a client that drips never reaches."""


def limits_of(
    config: BrokerConfig, listener: str, login_frame_bytes: int | None, addresses: NamedAddresses
) -> ListenLimits:
    """`login_frame_bytes`: how large a request may be before the client has logged in; None: nobody asks for a login."""
    get = config.get
    is_inter_broker = len(config.listeners) > 1 and listener.upper() == inter_broker_listener(config).upper()
    return ListenLimits(
        max_frame_bytes=login_frame_bytes or get("socket.request.max.bytes"),
        max_connections=_own(config, listener, "max.connections"),
        max_connections_per_ip=get("max.connections.per.ip"),
        max_idle_seconds=get("connections.max.idle.ms") / 1000,
        # Kafka's default of 100 KiB is small for a local network, and the kernel sizes buffers better by itself.
        send_buffer_bytes=get("socket.send.buffer.bytes")
        if config.is_set("socket.send.buffer.bytes")
        else -1,
        receive_buffer_bytes=get("socket.receive.buffer.bytes")
        if config.is_set("socket.receive.buffer.bytes")
        else -1,
        overrides_per_ip=addresses.read(),
        creation_rate=_own(config, listener, "max.connection.creation.rate"),
        broker_max_connections=get("max.connections"),
        broker_creation_rate=get("max.connection.creation.rate"),
        is_protected=is_inter_broker,
        login_seconds=None if login_frame_bytes is None else LOGIN_SECONDS,
    )


def _own(config: BrokerConfig, listener: str, name: str) -> int:
    """The listener's own bound, if it has one."""
    own = f"listener.name.{listener.lower()}.{name}"
    try:
        return int(config.of_listener(listener, (name,))[name]) if config.is_set(own) else UNLIMITED
    except ValueError:
        return UNLIMITED
