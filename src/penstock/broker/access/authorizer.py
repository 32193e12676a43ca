"""Whether a client may do what it asks for: the broker's side of access rules (`security/acls`).

`guards` asks for nearly all handlers. Without `authorizer.class.name` everybody
may do everything, and nobody asks (`is_on`). Refusals go to the log `penstock.authorizer` (`denials`) at INFO, with principal,
host, operation and resource.
"""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Iterable
from typing import Final, Protocol

from penstock.broker.access.denials import Denials
from penstock.config.layers import BrokerConfig
from penstock.metadata.image import AclsChanged
from penstock.model.acl import (
    ANY_NAME,
    ANY_PRINCIPAL,
    CLUSTER_NAME,
    OPERATIONS,
    Operation,
    Pattern,
    Permission,
    ResourceType,
    Rule,
    as_bits,
)
from penstock.security.acls import AclRules, Decision
from penstock.security.principals import Principal

log = logging.getLogger("penstock.authorizer")

AUTHORIZERS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
DENY_ALL: Final = Rule(ANY_PRINCIPAL, ANY_NAME, Operation.ALL, Permission.DENY)
REMEMBERED: Final = 20_000
"""Decisions that are kept until a rule changes: a client asks the same for each request."""
MAX_REMEMBERED_NAME: Final = 249
"""Characters. Clients choose the names that they ask about, of up to 32 KB; what is longer is decided each time."""
_ALL_OPERATIONS: Final = {kind: as_bits(*operations) for kind, operations in OPERATIONS.items()}


class Asking(Protocol):
    """Who asks: a `Call`."""

    @property
    def principal(self) -> Principal: ...

    @property
    def host(self) -> str: ...


class Authorizer:
    def __init__(self, config: BrokerConfig, loop: AbstractEventLoop | None = None) -> None:
        """ValueError, which names the option, where the class is not one of Kafka's own."""
        name = config.get("authorizer.class.name")
        if name and name not in AUTHORIZERS:
            raise ValueError(f"authorizer.class.name={name} is not known; use {AUTHORIZERS[0]}")
        self.is_on: Final = bool(name)
        self.own_listener: str | None = None
        """Of a cluster: the one by which other brokers reach us."""
        self.own_principal: Principal | None = None
        """As whom other brokers of the cluster log in at us, where a login says so."""
        self.rules = AclRules(
            super_users=_super_users(config.get("super.users")),
            allow_if_no_acl_found=config.get("allow.everyone.if.no.acl.found"),
        )
        self._denials = Denials(loop)
        # The hash of an enum's member is a call of Python's, that of a number or a tuple is not: hence what the key is.
        self._remembered: dict[tuple[Principal, str, int, str], Decision] = {}
        self._remembered_of_any: dict[tuple[Principal, str, int], bool] = {}

    def learn(self, change: AclsChanged) -> None:
        """What the metadata says of a pattern. Rules that cannot be read may be such that deny: then all is denied."""
        if change.fault:
            log.error(
                "%s; until it is repaired or removed all is denied there, but to super users", change.fault
            )
        self.set_rules(change.pattern, (DENY_ALL,) if change.fault else change.rules)

    def set_rules(self, pattern: Pattern, rules: Iterable[Rule]) -> None:
        """All rules of a pattern, in place of those it had. In force for the next request."""
        self.rules.set(pattern, rules)
        self._remembered.clear()
        self._remembered_of_any.clear()

    def allows(
        self,
        asking: Asking,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        tells: bool = True,
    ) -> bool:
        """`tells` is False where a refusal only leaves something out of an answer, which is not worth a line in the log."""
        if not self.is_on:
            return True
        decision = self.decide(asking, operation, resource_type, name)
        if not decision.is_allowed and tells:
            self.tell(asking, operation, resource_type, name)
        return decision.is_allowed

    def allows_any(self, asking: Asking, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether it may do this to some resource of the type. All rules are looked through: each producer asks it once."""
        if not self.is_on:
            return True
        principal, host = asking.principal, asking.host
        asked = (principal, host, operation << 4 | resource_type)
        is_allowed = self._remembered_of_any.get(asked)
        if is_allowed is None:
            is_allowed = self.rules.decide_any(str(principal), host, operation, resource_type)
            if len(principal.name) > MAX_REMEMBERED_NAME:
                return is_allowed
            if len(self._remembered_of_any) >= REMEMBERED:
                self._remembered_of_any.clear()
            self._remembered_of_any[asked] = is_allowed
        return is_allowed

    def decide(
        self, asking: Asking, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        principal, host = asking.principal, asking.host
        asked = (principal, host, operation << 4 | resource_type, name)
        decision = self._remembered.get(asked)
        if decision is None:
            decision = self.rules.decide(str(principal), host, operation, resource_type, name)
            if max(len(name), len(principal.name)) > MAX_REMEMBERED_NAME:
                return decision
            if len(self._remembered) >= REMEMBERED:
                self._remembered.clear()
            self._remembered[asked] = decision
        return decision

    def authorized_operations(self, asking: Asking, resource_type: ResourceType, name: str) -> int:
        """As the bits that Metadata and the describing APIs answer with."""
        if not self.is_on:
            return _ALL_OPERATIONS[resource_type]
        return as_bits(
            *(
                operation
                for operation in OPERATIONS[resource_type]
                if self.allows(asking, operation, resource_type, name, tells=False)
            )
        )

    def operations_on_cluster(self, asking: Asking) -> int:
        """None for who may not describe it."""
        if not self.allows(asking, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
            return 0
        return self.authorized_operations(asking, ResourceType.CLUSTER, CLUSTER_NAME)

    def tell(self, asking: Asking, operation: Operation, resource_type: ResourceType, name: str) -> None:
        self._denials.tell(str(asking.principal), asking.host, operation, resource_type, name)


def _super_users(text: str) -> list[str]:
    """ValueError names the entry that cannot be."""
    names = [entry.strip() for entry in text.split(";") if entry.strip()]
    for name in names:
        kind, colon, user = name.partition(":")
        if not (kind and colon and user):
            raise ValueError(f"super.users: '{name}' must have a type and a name, as in User:alice")
    return names
