"""`cluster.groups`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TypeVar

from penstock.admin.clients import ClusterClients
from penstock.admin.groups.lag import GroupLag, progress
from penstock.admin.groups.model import Committed, DeletedOffsets, Description, Listing
from penstock.admin.groups.requests import GroupRequests
from penstock.admin.groups.reset import Plan, Target, plan
from penstock.client.error_names import refused
from penstock.client.errors import NoSuchGroup, Refused, UserError
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

T = TypeVar("T")


class Groups:
    """The groups of a cluster, of both protocols."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def describe(self, *names: str) -> list[Description]:
        """These groups with their members, in the order given. NoSuchGroup names one that is not there, and a similar one.

        >>> cluster.groups.describe("billing")[0].state
        'Stable'
        """
        return self._clients.call(lambda client: found_groups(GroupRequests(client), names))

    def describe_each(self, names: Iterable[str]) -> dict[str, Description | Refused]:
        """The same for many: of each its description, or why there is none.

        >>> isinstance(cluster.groups.describe_each(["nope"])["nope"], Refused)
        True
        """
        wanted = list(names)
        return self._clients.call(lambda client: GroupRequests(client).describe(wanted))

    def lag(self, *names: str) -> list[GroupLag]:
        """How far groups are: the committed offset, the end and the lag of each partition. All groups where none is named.

        >>> [(one.partition, one.lag) for one in cluster.groups.lag("billing")[0].partitions]
        [(TopicPartition(topic='orders', partition=0), 12)]
        """

        def ask(groups: GroupRequests) -> list[GroupLag]:
            if names:
                described = found_groups(groups, names)
            else:
                listed = sorted(one.group_id for one in groups.listing() if one.is_of_consumers)
                # One that went away since it was listed is no error.
                described = [one for one in groups.describe(listed).values() if isinstance(one, Description)]
            return [GroupLag(group, tuple(progress(groups, group))) for group in described]

        return self._clients.call(lambda client: ask(GroupRequests(client)))

    def committed(self, name: str) -> dict[TopicPartition, Committed]:
        """The offsets that a group has committed.

        >>> cluster.groups.committed("billing")[TopicPartition("orders", 0)].offset
        30
        """
        return self._clients.call(lambda client: GroupRequests(client).committed(name))

    def commit(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Commits offsets for a group without members; other partitions keep theirs.

        >>> cluster.groups.commit("billing", {TopicPartition("orders", 0): 0})
        """
        self._clients.change(lambda client: GroupRequests(client).commit(name, offsets))

    def partitions(self, name: str, topics: Iterable[str] = ()) -> list[TopicPartition]:
        """The partitions that words name: `orders` (all of them) or `orders:0,2`; without words, all that the group has
        offsets of. UserError when a topic or partition is not there.

        >>> cluster.groups.partitions("billing", ["orders:0,2"])
        [TopicPartition(topic='orders', partition=0), TopicPartition(topic='orders', partition=2)]
        """
        words = list(topics)
        return self._clients.call(lambda client: _chosen(GroupRequests(client), name, words))

    def plan_reset(self, name: str, partitions: Iterable[TopicPartition], target: Target) -> Plan:
        """Which offsets a reset would commit. Writes nothing.

        >>> cluster.groups.plan_reset("billing", [TopicPartition("orders", 0)], Target("earliest")).offsets
        {TopicPartition(topic='orders', partition=0): 0}
        """
        wanted = list(partitions)
        return self._clients.call(lambda client: plan(GroupRequests(client), name, wanted, target))

    def reset(
        self, name: str, partitions: Iterable[TopicPartition], target: Target, *, dry_run: bool = False
    ) -> Plan:
        """Sends a group to other offsets; with `dry_run` only says to which. The group must have no members, and need not be
        there yet: UserError says how many it has.

        >>> cluster.groups.reset("billing", cluster.topics.partitions("orders"), Target("earliest")).offsets
        {TopicPartition(topic='orders', partition=0): 0}
        """
        self.check_inactive(name)
        planned = self.plan_reset(name, partitions, target)
        if planned.offsets and not dry_run:
            self.commit(name, planned.offsets)
        return planned

    def check_inactive(self, name: str) -> None:
        """UserError when the group has members.

        >>> cluster.groups.check_inactive("billing")
        """
        found = self.describe_each([name])[name]
        if isinstance(found, Refused):
            if found.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise found
        elif not found.is_inactive:
            raise UserError(
                f"{name} has {len(found.members)} members and is {found.state}: stop them first, then reset it."
            )

    def delete(self, *names: str) -> None:
        """Deletes groups with their offsets. They must have no members. Refused names the first that could not be deleted; the
        others are.

        >>> cluster.groups.delete("billing")
        """
        for name, error in self.delete_each(names).items():
            if error is not None:
                raise refused(error.code, f"{name} was not deleted: {what_to_do(error)}")

    def delete_each(self, names: Iterable[str]) -> dict[str, Refused | None]:
        """The same for many: None where one was deleted, else why not.

        >>> cluster.groups.delete_each(["billing", "shipping"])
        {'billing': None, 'shipping': None}
        """
        wanted = list(names)
        return self._clients.change(lambda client: GroupRequests(client).delete(wanted))

    def delete_offsets(self, name: str, partitions: Iterable[TopicPartition]) -> None:
        """Makes a group forget where it was in partitions that its members do not read.

        >>> cluster.groups.delete_offsets("billing", [TopicPartition("orders", 0)])
        """
        deleted = self.delete_each_offset(name, partitions)
        failed = deleted.error or next((one for one in deleted.partitions.values() if one is not None), None)
        if failed is not None:
            raise refused(failed.code, f"the offsets of {name} were not deleted: {what_to_do(failed)}")

    def delete_each_offset(self, name: str, partitions: Iterable[TopicPartition]) -> DeletedOffsets:
        """The same, with what came of it for each partition.

        >>> cluster.groups.delete_each_offset("billing", [TopicPartition("orders", 0)]).error is None
        True
        """
        wanted = list(partitions)
        return self._clients.change(lambda client: GroupRequests(client).delete_offsets(name, wanted))

    # The last one: below it, `list` would be this method.
    def list(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[Listing]:
        """The groups by name, of every kind; only those of some states (Stable, Empty …) and types (Classic, Consumer).

        >>> [group.group_id for group in cluster.groups.list(states=["Empty"])]
        ['billing']
        """
        asked = list(states), list(types)
        return sorted(
            self._clients.call(lambda client: GroupRequests(client).listing(states=asked[0], types=asked[1]))
        )


def found_groups(groups: GroupRequests, names: Iterable[str]) -> list[Description]:
    described = []
    for name, found in groups.describe(names).items():
        if isinstance(found, Description) and found.state != "Dead":
            described.append(found)
            continue
        if isinstance(found, Refused) and found.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise found
        known = [one.group_id for one in groups.listing()]
        raise NoSuchGroup(name, difflib.get_close_matches(name, known, n=3), is_any_there=bool(known))
    return described


def _chosen(groups: GroupRequests, name: str, words: list[str]) -> list[TopicPartition]:
    from penstock.admin.groups.reset import parse_topic

    if not words:
        partitions = sorted(groups.committed(name))
        if not partitions:
            raise UserError(f"{name} has no offsets yet: name the topics with --topic.")
        return partitions
    asked = [parse_topic(word) for word in words]
    known = groups.partitions(topic for topic, _ in asked)
    chosen = []
    for topic, numbers in asked:
        if topic not in known:
            raise UserError(f"there is no topic '{topic}'.")
        for number in known[topic] if numbers is None else numbers:
            if number not in known[topic]:
                raise UserError(f"{topic} has no partition {number}: it has {len(known[topic])}")
            chosen.append(TopicPartition(topic, number))
    return sorted(set(chosen))


def what_to_do(error: Refused) -> str:
    """The refusal in words that say what helps."""
    if error.code == ErrorCode.NON_EMPTY_GROUP:
        return "it has members. Stop them first."
    if error.code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
        return "its members read that topic. Stop them first."
    return str(error)
