"""`cluster.strays`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.admin.clients import ClusterClients
from penstock.admin.restoration import (
    Restoration,
    brokers_away,
    lost_names,
    plan,
    restore,
    restored_configs,
)
from penstock.admin.strays import StrayTopic, ask_strays, by_topic
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import UserError
from penstock.model.strays import FoundStray
from penstock.model.units import ranges_text


class RestorationPlan(NamedTuple):
    """What a restoration would do."""

    restorations: tuple[Restoration, ...]
    problems: dict[str, str]
    """Topic, and why it cannot be restored."""
    brokers_away: tuple[int, ...]
    """Brokers that are not there, and may have more strays."""


class Strays:
    """Logs that brokers have and the cluster's metadata does not place there. Only Penstock's brokers tell of them."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def topics(self) -> list[StrayTopic]:
        """The same by topic, with what the cluster has of each.

        >>> [topic.name for topic in cluster.strays.topics() if topic.lost]
        ['orders']
        """
        return self._clients.call(lambda client: by_topic(ask_strays(client), client.metadata().topics))

    def plan(
        self,
        topic: str,
        *,
        name: str | None = None,
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
        allow_missing: bool = False,
    ) -> RestorationPlan:
        """How a topic (its name, or its id) would be made again of its strays; UserError says why it cannot be.

        `name` is for another name, `partitions` for how many it had. `allow_missing` lets partitions begin empty of which no
        broker has a stray.

        >>> cluster.strays.plan("orders").restorations[0].end_offsets
        [42, 17]
        """

        def ask(client: ClusterClient) -> RestorationPlan:
            described = client.metadata()
            planned = plan(
                ask_strays(client), topic, name=name, partitions=partitions, topics=described.topics
            )
            _check(planned, configs or {}, allow_missing=allow_missing)
            return RestorationPlan((planned,), {}, tuple(brokers_away(described)))

        return self._clients.call(ask)

    def plan_all(self, *, allow_missing: bool = False) -> RestorationPlan:
        """The same for all topics that the cluster lacks, Kafka's own first. What cannot be restored is among the problems.

        >>> cluster.strays.plan_all().problems
        {}
        """

        def ask(client: ClusterClient) -> RestorationPlan:
            found, described = ask_strays(client), client.metadata()
            plans: list[Restoration] = []
            problems: dict[str, str] = {}
            for wanted in lost_names(by_topic(found, described.topics)):
                try:
                    planned = plan(found, wanted, topics=described.topics)
                    _check(planned, {}, allow_missing=allow_missing)
                except UserError as error:
                    problems[wanted] = str(error)
                else:
                    plans.append(planned)
            return RestorationPlan(tuple(plans), problems, tuple(brokers_away(described)))

        return self._clients.call(ask)

    def restore(self, planned: Restoration, configs: Mapping[str, str] | None = None) -> dict[str, str]:
        """Makes a topic of its strays again, or the partitions that it lacks; the configs that it has then. What is not given
        keeps all records.

        >>> for planned in cluster.strays.plan("orders").restorations: cluster.strays.restore(planned)
        """
        given = {} if planned.first_partition else restored_configs(planned.name, configs or {})
        self._clients.change(lambda client: restore(client, planned, given))
        return given

    # The last one: below it, `list` would be this method.
    def list(self) -> list[FoundStray]:
        """The strays of all brokers that are there.

        >>> [(stray.topic, stray.partition, stray.broker) for stray in cluster.strays.list()]
        [('orders', 0, 1)]
        """
        return self._clients.call(ask_strays)


def _check(planned: Restoration, configs: Mapping[str, str], *, allow_missing: bool) -> None:
    if planned.first_partition and configs:
        raise UserError(f"{planned.name} is there, with configs: change them with penstock configs set")
    if planned.missing and not allow_missing:
        raise UserError(
            f"no broker has a stray of partition {ranges_text(planned.missing)} of {planned.name}: start the broker that has it, "
            "or let it begin empty with --allow-missing"
        )
