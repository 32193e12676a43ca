"""The logins of a broker's JAAS file, for those mechanisms of which no option says anything.

Kafka's order: `listener.name.LISTENER.MECHANISM.sasl.jaas.config`, then the section `LISTENER.KafkaServer`, with the listener's
name in small letters, then the section `KafkaServer`.
"""

from typing import Final

from penstock.broker.access.inter_broker import inter_broker_listener
from penstock.config.layers import BrokerConfig
from penstock.net.endpoints import parse_endpoints, security_protocol
from penstock.security.jaas_files import JaasFile

SECTION: Final = "KafkaServer"


def logins_of_file(config: BrokerConfig, file: JaasFile) -> dict[str, str]:
    """The options that the file stands for."""
    if file.path is None:
        return {}
    found: dict[str, str] = {}
    protocols = config.get("listener.security.protocol.map")
    for endpoint in parse_endpoints(",".join(config.listeners), "listeners"):
        listener = endpoint.listener
        if not security_protocol(listener, protocols).startswith("SASL"):
            continue
        given = config.of_listener(listener, ("",))
        for mechanism in _mechanisms(config, given, listener):
            option = f"{mechanism.lower()}.sasl.jaas.config"
            if given.get(option) or given.get("sasl.jaas.config"):
                continue
            module = file.module(mechanism, f"{listener.lower()}.{SECTION}", SECTION)
            if module is not None:
                found[f"listener.name.{listener.lower()}.{option}"] = module.text()
    return found


def _mechanisms(config: BrokerConfig, given: dict[str, str], listener: str) -> set[str]:
    """That clients, or this broker at others, log in with."""
    enabled = given.get("sasl.enabled.mechanisms")
    names = config.get("sasl.enabled.mechanisms") if enabled is None else enabled.split(",")
    mechanisms = {name.strip() for name in names if name.strip()}
    if listener == inter_broker_listener(config):
        mechanisms.add(str(config.get("sasl.mechanism.inter.broker.protocol")).strip())
    return mechanisms
