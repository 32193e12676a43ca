"""What a flow keeps the same at the target beside records: topics, their partitions and configs, and who may read them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.admin import Cluster, ConfigResource
from penstock.admin.facets.acls import Acl
from penstock.client.errors import Refused
from penstock.mirror.filters import Filter
from penstock.mirror.naming import Naming
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

log = logging.getLogger("penstock.mirror")

OF_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"
ANY: Final = "*"
ALLOW, LITERAL, WRITE, ALL, READ = "ALLOW", "LITERAL", "WRITE", "ALL", "READ"


class Copying:
    """Refused and Unreachable come from every call."""

    def __init__(self, source: Cluster, target: Cluster, naming: Naming, values: Mapping[str, Any]) -> None:
        self._source, self._target, self._naming = source, target, naming
        self._topics = Filter(values["topics"], values["topics.exclude"], "topics")
        self._configs = Filter([".*"], values["config.properties.exclude"], "config.properties")
        self._factor: int = values["replication.factor"]
        self._has_heartbeats: bool = values["heartbeats.replication.enabled"]
        self._knows_no_acls = False

    def wants(self, topic: str) -> bool:
        naming = self._naming
        if naming.is_internal(topic) or naming.is_loop(topic):
            return False
        return self._topics.passes(topic) or (self._has_heartbeats and naming.is_heartbeats(topic))

    def found(self) -> dict[str, int]:
        """Topics of the source that are copied, with their partitions."""
        listed = self._source.topics.list(internal=True)
        return {one.name: one.partitions for one in listed if self.wants(one.name)}

    def make(self, topics: Mapping[str, int]) -> list[str]:
        """Those that are missing at the target are made, those with too few partitions grow. What was done, in words."""
        there = {one.name: one.partitions for one in self._target.topics.list(internal=True)}
        done = []
        missing = [name for name in topics if self._naming.remote(name) not in there]
        configs = self._source_configs(missing)
        copies = self._copies() if missing else 0
        for name, partitions in topics.items():
            remote = self._naming.remote(name)
            if remote not in there:
                self._create(remote, partitions, copies, configs.get(name, {}))
                done.append(f"{remote} is made with {partitions} partitions")
            elif there[remote] < partitions:
                self._target.topics.add_partitions(remote, partitions)
                done.append(f"{remote} grows to {partitions} partitions")
        for line in done:
            log.info("%s", line)
        return done

    def copy_configs(self, topics: Iterable[str]) -> int:
        """How many topics have changed. What the source does not set is not set at the target."""
        names = list(topics)
        wanted = self._source_configs(names)
        remotes = {name: self._naming.remote(name) for name in names}
        there = self._target.configs.of_topics(*remotes.values()) if names else {}
        changed = 0
        for name, configs in wanted.items():
            entries = there.get(remotes[name])
            if entries is None:
                continue
            now = {
                one.name: one.value
                for one in entries.values()
                if one.source_name == OF_TOPIC and self._configs.passes(one.name)
            }
            new = {key: text for key, text in configs.items() if now.get(key) != text and key in entries}
            gone = [key for key in now if key not in configs]
            if new or gone:
                self._target.configs.alter(ConfigResource.topic(remotes[name]), set=new, delete=gone)
                changed += 1
        return changed

    def copy_acls(self, topics: Iterable[str]) -> int:
        """Who may read a topic may read its copy; nobody may write it for that. How many rules are new."""
        if self._knows_no_acls:
            return 0
        names = set(topics)
        try:
            rules = self._source.acls.list(resource_type="topic")
            there = set(self._target.acls.list(resource_type="topic"))
        except Refused as error:
            if error.code != ErrorCode.SECURITY_DISABLED:
                raise
            log.info("one of the clusters has no access rules: they are not copied")
            self._knows_no_acls = True
            return 0
        added = 0
        for rule in rules:
            wanted = self._wanted_rule(rule, names)
            if wanted is not None and wanted not in there:
                self._target.acls.add(
                    wanted.principal,
                    [wanted.operation],
                    name=wanted.resource_name,
                    host=wanted.host,
                    deny=wanted.permission.upper() != ALLOW,
                )
                there.add(wanted)
                added += 1
        return added

    def _wanted_rule(self, rule: Acl, names: set[str]) -> Acl | None:
        if rule.pattern.upper() != LITERAL or rule.resource_name not in names:
            return None
        is_allowed, operation = rule.permission.upper() == ALLOW, rule.operation
        if is_allowed and operation.upper() == WRITE:
            return None
        if is_allowed and operation.upper() == ALL:
            operation = READ.capitalize()
        return rule._replace(operation=operation, resource_name=self._naming.remote(rule.resource_name))

    def _source_configs(self, topics: list[str]) -> dict[str, dict[str, str]]:
        if not topics:
            return {}
        return {
            name: {
                one.name: one.value
                for one in entries.values()
                if one.source_name == OF_TOPIC and one.value is not None and self._configs.passes(one.name)
            }
            for name, entries in self._source.configs.of_topics(*topics).items()
        }

    def _copies(self) -> int:
        brokers = len(self._target.brokers.list())
        if brokers < self._factor:
            log.warning(
                "topics get a replication factor of %d, not %d: there are no more brokers",
                brokers,
                self._factor,
            )
        return min(brokers, self._factor)

    def _create(self, name: str, partitions: int, copies: int, configs: Mapping[str, str]) -> None:
        def make(given: Mapping[str, str]) -> None:
            self._target.topics.create(
                name, partitions=partitions, replication_factor=copies, configs=given, exist_ok=True
            )

        try:
            make(configs)
        except Refused as error:
            if error.code != ErrorCode.INVALID_CONFIG or not configs:
                raise
            log.warning("%s is made without configs, since the target refuses them: %s", name, error)
            make({})


def dealt(topics: Mapping[str, int], tasks: int) -> list[list[TopicPartition]]:
    """Partitions for tasks, one after the other."""
    every = [TopicPartition(name, number) for name in sorted(topics) for number in range(topics[name])]
    found: list[list[TopicPartition]] = [[] for _ in range(min(tasks, len(every)))]
    for number, place in enumerate(every):
        found[number % len(found)].append(place)
    return found
