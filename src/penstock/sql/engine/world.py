"""The catalog as analysis sees it: the server's state, the properties of one request, and the topics that there are."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.admin.cluster import Cluster
from penstock.admin.topics import TopicDescription
from penstock.client.errors import NoSuchTopic
from penstock.sql.engine.options import STREAMS, SqlOptions
from penstock.sql.engine.state import State
from penstock.streams.formats.registry import SchemaLookup
from penstock.streams.plan.sources import Source
from penstock.streams.plan.types import SqlType


class World:
    """Of one request. What is asked of the cluster is kept for as long as that takes."""

    def __init__(
        self,
        state: State,
        options: SqlOptions,
        cluster: Cluster,
        schemas: SchemaLookup | None,
        properties: Mapping[str, str],
        topics: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        """`topics`: all that there are, with their partitions and replicas; None: the cluster is asked."""
        self._state = state
        self._options = options
        self._cluster = cluster
        self._schemas = schemas
        self._properties = properties
        self._topics: dict[str, tuple[int, int] | None] = {}
        self._all = topics

    def source(self, name: str) -> Source | None:
        return self._state.sources.get(name)

    def source_names(self) -> tuple[str, ...]:
        return tuple(self._state.sources)

    def type(self, name: str) -> SqlType | None:
        return self._state.types.get(name)

    def type_names(self) -> tuple[str, ...]:
        return tuple(self._state.types)

    def topic_partitions(self, topic: str) -> int | None:
        found = self._topic(topic)
        return None if found is None else found[0]

    def topic_replicas(self, topic: str) -> int | None:
        found = self._topic(topic)
        return None if found is None else found[1]

    def property(self, name: str) -> str | None:
        for known in (self._properties, self._state.properties):
            for each in (name, STREAMS + name):
                if each in known:
                    return known[each]
        for each in (name, STREAMS + name):
            if each in self._options.values:
                value = self._options.values[each]
                return str(value).lower() if isinstance(value, bool) else str(value)
        return None

    def readers_of(self, name: str) -> tuple[str, ...]:
        return tuple(self._state.readers_of(name))

    def query_statement(self, query_id: str) -> str | None:
        query = self._state.queries.get(query_id)
        return None if query is None else query.statement

    def schemas(self) -> SchemaLookup | None:
        return self._schemas

    def _topic(self, name: str) -> tuple[int, int] | None:
        if self._all is not None:
            return self._all.get(name)
        if name not in self._topics:
            try:
                self._topics[name] = sizes(self._cluster.topics.describe(name)[0])
            except NoSuchTopic:
                self._topics[name] = None
        return self._topics[name]


def sizes(topic: TopicDescription) -> tuple[int, int]:
    return len(topic.partitions), max((len(each.replicas) for each in topic.partitions), default=1)
