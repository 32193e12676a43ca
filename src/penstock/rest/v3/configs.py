"""The configs of topics, of brokers, and of all brokers: listed, read, set, reset, and changed together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from penstock.admin import Cluster, ConfigResource
from penstock.admin.configs import ConfigEntry
from penstock.rest import bodies
from penstock.rest.v3.shapes import CLUSTER, CONTENT, Links, Shape, Views, not_found
from penstock.web.call import Answer, Call
from penstock.web.errors import HttpError
from penstock.web.routes import Routes

SET, DELETE = "SET", "DELETE"
_COMMAND_FIELDS: Final = frozenset({"name", "value", "operation"})


class _Kind(NamedTuple):
    """One of the three kinds of things that have configs."""

    kind: str
    path: str
    """Below the cluster, up to the configs themselves."""
    resource: Callable[[Call], ConfigResource]
    parts: Callable[[Call], tuple[object, ...]]
    """The same as `path` for one request."""
    names: Callable[[Call], str]
    fields: Callable[[Call], Shape]


_TOPIC: Final = _Kind(
    "KafkaTopicConfig", "/topics/{topic}/configs", lambda call: ConfigResource.topic(call["topic"]),
    lambda call: ("topics", call["topic"], "configs"), lambda call: f"topic={call['topic']}/config=",
    lambda call: {"topic_name": call["topic"]},
)  # fmt: skip
_BROKER: Final = _Kind(
    "KafkaBrokerConfig", "/brokers/{broker}/configs",
    lambda call: ConfigResource.broker(call.path_number("broker")),
    lambda call: ("brokers", call["broker"], "configs"), lambda call: f"broker={call['broker']}/config=",
    lambda call: {"broker_id": call.path_number("broker")},
)  # fmt: skip
_ALL_BROKERS: Final = _Kind(
    "KafkaClusterConfig", "/broker-configs", lambda call: ConfigResource.all_brokers(),
    lambda call: ("broker-configs",), lambda call: "broker-config=", lambda call: {"config_type": "BROKER"},
)  # fmt: skip


class ConfigsResource:
    def __init__(self, views: Views) -> None:
        self._views = views

    def add_to(self, routes: Routes) -> None:
        for kind in (_TOPIC, _BROKER, _ALL_BROKERS):
            one = _OneKind(self._views, kind)
            at = CLUSTER + kind.path
            routes.add("GET", at, one.every, "Configs.", content=CONTENT)
            routes.add(
                "POST", f"{at}:alter", one.alter, "Change configs together.", body="changes", content=CONTENT
            )
            routes.add("GET", f"{at}/{{name}}", one.one, "A config.", content=CONTENT)
            routes.add("PUT", f"{at}/{{name}}", one.put, "Set a config.", body="its value", content=CONTENT)
            routes.add(
                "DELETE", f"{at}/{{name}}", one.delete, "Reset a config to its default.", content=CONTENT
            )
        routes.add(
            "GET",
            f"{CLUSTER}/topics/-/configs",
            self.of_topics,
            "The configs of all topics.",
            content=CONTENT,
        )
        routes.add(
            "GET",
            f"{CLUSTER}/brokers/-/configs",
            self.of_brokers,
            "The configs of each broker.",
            content=CONTENT,
        )

    async def of_topics(self, call: Call) -> object:
        view = await self._views.of(call)

        def ask(cluster: Cluster) -> list[Shape]:
            names = [one.name for one in cluster.topics.list(internal=True)]
            found = cluster.configs.of_topics(*names)
            return [
                shape(view.links, _TOPIC.kind, ("topics", name, "configs"), f"topic={name}/config=", entry)
                | {"topic_name": name}
                for name in sorted(found)
                for entry in sorted(found[name].values())
            ]

        return view.links.collection(
            "KafkaTopicConfigList", ("topics", "-", "configs"), await view.access.ask(ask)
        )

    async def of_brokers(self, call: Call) -> object:
        view = await self._views.of(call)

        def ask(cluster: Cluster) -> list[Shape]:
            return [
                shape(
                    view.links,
                    _BROKER.kind,
                    ("brokers", one.id, "configs"),
                    f"broker={one.id}/config=",
                    entry,
                )
                | {"broker_id": one.id}
                for one in cluster.brokers.list()
                for entry in cluster.configs.describe(ConfigResource.broker(one.id))
            ]

        return view.links.collection(
            "KafkaBrokerConfigList", ("brokers", "-", "configs"), await view.access.ask(ask)
        )


class _OneKind:
    def __init__(self, views: Views, kind: _Kind) -> None:
        self._views = views
        self._kind = kind

    async def every(self, call: Call) -> object:
        view, kind = await self._views.of(call), self._kind
        resource = kind.resource(call)
        found = await view.access.ask(lambda cluster: _described(cluster, resource))
        return view.links.collection(
            f"{kind.kind}List", kind.parts(call), (self._shape(view.links, call, one) for one in found)
        )

    async def one(self, call: Call) -> object:
        view = await self._views.of(call)
        resource = self._kind.resource(call)
        for one in await view.access.ask(lambda cluster: _described(cluster, resource)):
            if one.name == call["name"]:
                return self._shape(view.links, call, one)
        raise not_found()

    async def put(self, call: Call) -> object:
        view = await self._views.of(call)
        value = bodies.text(await bodies.json_object(call, {"value"}), "value", None)
        resource, name = self._kind.resource(call), call["name"]

        def ask(cluster: Cluster) -> None:
            _check_known(cluster, resource, [name])
            if value is None:
                cluster.configs.alter(resource, delete=[name])
            else:
                cluster.configs.alter(resource, set={name: value})

        await view.access.ask(ask)
        return Answer(status=204)

    async def delete(self, call: Call) -> object:
        view = await self._views.of(call)
        resource, name = self._kind.resource(call), call["name"]

        def ask(cluster: Cluster) -> None:
            _check_known(cluster, resource, [name])
            cluster.configs.alter(resource, delete=[name])

        await view.access.ask(ask)
        return Answer(status=204)

    async def alter(self, call: Call) -> object:
        view = await self._views.of(call)
        given = await bodies.json_object(call, {"data", "validate_only"})
        set_, delete = {}, []
        for one in bodies.objects(bodies.items(given, "data"), _COMMAND_FIELDS):
            name, value = bodies.text(one, "name"), bodies.text(one, "value", None)
            operation = str(bodies.text(one, "operation", SET)).upper()
            if operation == DELETE or (operation == SET and value is None):
                delete.append(name)
            elif operation == SET:
                set_[name] = value
            else:
                raise HttpError(400, f"operation must be SET or DELETE, not {operation[:50]}")
        resource, validate_only = self._kind.resource(call), bodies.flag(given, "validate_only", False)
        if not set_ and not delete:
            raise HttpError(422, "data may not be empty")
        await view.access.ask(
            lambda cluster: cluster.configs.alter(
                resource, set=set_, delete=delete, validate_only=validate_only
            )
        )
        return Answer(status=204)

    def _shape(self, links: Links, call: Call, entry: ConfigEntry) -> Shape:
        kind = self._kind
        return shape(links, kind.kind, kind.parts(call), kind.names(call), entry) | kind.fields(call)


def _described(cluster: Cluster, resource: ConfigResource) -> list[ConfigEntry]:
    return cluster.configs.describe(resource)


def _check_known(cluster: Cluster, resource: ConfigResource, names: list[str]) -> None:
    """The configs of all brokers are listed only where they are set, so there is nothing to check against."""
    if resource == ConfigResource.all_brokers():
        return
    known = {one.name for one in cluster.configs.describe(resource)}
    if not known.issuperset(names):
        raise not_found()


def shape(links: Links, kind: str, path: tuple[object, ...], name: str, entry: ConfigEntry) -> Shape:
    return links.resource(
        kind, (*path, entry.name), name + entry.name, name=entry.name, value=entry.value,
        is_default=entry.is_default, is_read_only=entry.is_read_only, is_sensitive=entry.is_sensitive,
        source=entry.source_name,
        synonyms=[{"name": one.name, "value": one.value, "source": one.source_name} for one in entry.synonyms],
    )  # fmt: skip
