"""Which listener brokers use among themselves: `inter.broker.listener.name`, or that called after
`security.inter.broker.protocol`."""

from penstock.config.layers import BrokerConfig
from penstock.net.endpoints import security_protocol


def inter_broker_listener(config: BrokerConfig) -> str:
    named = config.get("inter.broker.listener.name")
    return str(named or config.get("security.inter.broker.protocol")).upper()


def between_brokers(config: BrokerConfig) -> str:
    """The security protocol there: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. ValueError where it is not named."""
    return security_protocol(inter_broker_listener(config), config.get("listener.security.protocol.map"))
