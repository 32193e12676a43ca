"""Changes of brokers' configs that a client proposes: what is looked at, and done, before the controller decides.

The broker that the change is for tries the key and trust stores: only it can, the files are on its machine. The controller
encrypts passwords, so that nothing behind it sees them in clear.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from penstock.broker.metadata.stored_passwords import SECRET, StoredPasswords, is_password
from penstock.config.operations import SET
from penstock.config.option import Option
from penstock.controller.configs import AnyResource, ConfigRules, ResourceType, altered_by
from penstock.metadata.image import BROKERS
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages import alter_configs as legacy
from penstock.wire.messages import incremental_alter_configs as incremental

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerId, WithConfig, WithImage, WithPasswords, WithPools

    class Needs(WithBrokerId, WithConfig, WithImage, WithPasswords, WithPools, Protocol): ...


LISTENER_PREFIX: Final = "listener.name."
Resource = TypeVar("Resource", incremental.AlterConfigsResource, legacy.AlterConfigsResource)


class Refusals(NamedTuple):
    """The rules for one request, whose resources were looked at before: why brokers refuse, by their names in the image."""

    rules: ConfigRules
    refused: Mapping[str, str]

    def check(self, entity_type: str, entity_name: str, overrides: Mapping[str, str]) -> None:
        self.rules.check(entity_type, entity_name, overrides)
        if entity_type == BROKERS and (why := self.refused.get(entity_name)) is not None:
            raise ApiError(ErrorCode.INVALID_REQUEST, why)

    def option(self, entity_type: str, name: str) -> Option | None:
        return self.rules.option(entity_type, name)


class Proposals:
    def __init__(self, node: "Needs", rules: ConfigRules) -> None:
        self._node = node
        self._rules = rules
        self.stores_named: Callable[[], None] = lambda: None
        """Called where stores of this broker are set, also to what they are: their files are read again."""

    async def looked_at(
        self, resources: Sequence[Resource], *, validate_only: bool
    ) -> tuple[list[Resource], Refusals]:
        """The resources with their passwords encrypted, and what is refused already."""
        refused = await self.unusable_here(resources, validate_only=validate_only)
        sealed = []
        for resource in resources:
            broker_id = _broker_of(resource)
            names = [] if broker_id is None else _passwords_set(resource)
            if names and not self._node.passwords.has_secret:
                refused[str(broker_id)] = (
                    f"Password encoder secret not configured: {names[0]} can be set where {SECRET} is, "
                    "the same for all brokers"
                )
                names = []
            sealed.append(await self._sealed(resource) if names else resource)
        return sealed, Refusals(self._rules, refused)

    async def unusable_here(self, resources: Sequence[AnyResource], *, validate_only: bool) -> dict[str, str]:
        """Why this broker could not use the key and trust stores that it would be given, by its name in the image."""
        node, refused = self._node, dict[str, str]()
        for resource in resources:
            listeners = listeners_named(config.name for config in resource.configs)
            if not listeners or _broker_of(resource) != node.broker_id:
                continue
            overrides = node.image.broker_overrides(node.broker_id)
            overrides = await node.pools.codecs.run(node.passwords.open, overrides)
            try:
                altered = altered_by(resource, overrides, partial(self._rules.option, BROKERS))
            except ApiError:
                continue  # which the decision says
            why = await self._unusable(altered, listeners)
            if why is not None:
                refused[str(node.broker_id)] = why
            elif not validate_only:
                self.stores_named()
        return refused

    async def _unusable(self, altered: Mapping[str, str], listeners: set[str]) -> str | None:
        from penstock.broker.access.proposed_stores import unusable

        look = partial(
            unusable,
            dict(self._node.config.static),
            cluster_default=dict(self._node.image.all_broker_overrides()),
            broker=altered,
            listeners=listeners,
        )
        return await self._node.pools.handshakes.run(look)

    async def _sealed(self, resource: Resource) -> Resource:
        return await self._node.pools.codecs.run(_sealed, self._node.passwords, resource)


def _sealed(passwords: StoredPasswords, resource: Resource) -> Resource:
    names = set(_passwords_set(resource))
    configs = []
    for config in resource.configs:
        if config.name in names and config.value is not None:
            config = copy(config)
            config.value = passwords.seal(config.value or "")
        configs.append(config)
    sealed = copy(resource)
    sealed.configs = configs
    return sealed


def _passwords_set(resource: AnyResource) -> list[str]:
    return [
        config.name
        for config in resource.configs
        if is_password(config.name)
        and config.value is not None
        and getattr(config, "config_operation", SET) == SET
    ]


def _broker_of(resource: AnyResource) -> int | None:
    """Whose configs these are; None for what is no broker's own, or is no number."""
    name = resource.resource_name
    is_one = resource.resource_type == ResourceType.BROKER and name.isascii() and name.isdecimal()
    return int(name) if is_one else None


def listeners_named(names: Iterable[str]) -> set[str]:
    """Those, in small letters, of which one of these names sets something about TLS."""
    found = set()
    for name in names:
        listener, _, option = name.removeprefix(LISTENER_PREFIX).partition(".")
        if name.startswith(LISTENER_PREFIX) and option.startswith("ssl."):
            found.add(listener)
    return found
