"""/consumer-groups: their members, what these read, and how far behind they are."""

from __future__ import annotations

import re

from penstock.admin import Cluster
from penstock.admin.groups.lag import GroupLag, Progress
from penstock.admin.groups.model import Description, Member
from penstock.rest.v3.shapes import CLUSTER, CONTENT, Links, Shape, Views, not_found
from penstock.web.call import Call
from penstock.web.routes import Routes


class GroupsResource:
    def __init__(self, views: Views) -> None:
        self._views = views

    def add_to(self, routes: Routes) -> None:
        at = f"{CLUSTER}/consumer-groups"
        one = f"{at}/{{group}}"
        for pattern, handler, summary in (
            (at, self.every, "The consumer groups."),
            (one, self.one, "A consumer group."),
            (f"{one}/consumers", self.consumers, "The members of a group."),
            (f"{one}/consumers/{{consumer}}", self.consumer, "A member of a group."),
            (f"{one}/consumers/{{consumer}}/assignments", self.assignments, "What a member reads."),
            (f"{one}/consumers/{{consumer}}/assignments/{{topic}}/partitions/{{partition}}", self.assignment,
             "One partition that a member reads."),
            (f"{one}/lag-summary", self.lag_summary, "How far behind a group is."),
            (f"{one}/lags", self.lags, "How far behind a group is, of each partition."),
            (f"{one}/lags/{{topic}}/partitions/{{partition}}", self.lag, "How far behind a group is in a partition."),
        ):  # fmt: skip
            routes.add("GET", pattern, handler, summary, content=CONTENT)

    async def every(self, call: Call) -> object:
        view = await self._views.of(call)

        def ask(cluster: Cluster) -> list[Description]:
            names = sorted(one.group_id for one in cluster.groups.list() if one.is_of_consumers)
            # One that went away since it was listed is no error.
            return [
                one for one in cluster.groups.describe_each(names).values() if isinstance(one, Description)
            ]

        found = await view.access.ask(ask)
        return view.links.collection(
            "KafkaConsumerGroupList", ("consumer-groups",), (shape(view.links, one) for one in found)
        )

    async def one(self, call: Call) -> object:
        view = await self._views.of(call)
        return shape(view.links, await self._described(call))

    async def consumers(self, call: Call) -> object:
        view, group = await self._views.of(call), call["group"]
        members = (await self._described(call)).members
        return view.links.collection(
            "KafkaConsumerList",
            ("consumer-groups", group, "consumers"),
            (_member(view.links, group, one) for one in members),
        )

    async def consumer(self, call: Call) -> object:
        view = await self._views.of(call)
        return _member(view.links, call["group"], await self._found_member(call))

    async def assignments(self, call: Call) -> object:
        view, group, name = await self._views.of(call), call["group"], call["consumer"]
        member = await self._found_member(call)
        return view.links.collection(
            "KafkaConsumerAssignmentList",
            ("consumer-groups", group, "consumers", name, "assignments"),
            (_assignment(view.links, group, member, *one) for one in sorted(member.assignment)),
        )

    async def assignment(self, call: Call) -> object:
        view, wanted = await self._views.of(call), (call["topic"], call.path_number("partition"))
        member = await self._found_member(call)
        if wanted not in member.assignment:
            raise not_found()
        return _assignment(view.links, call["group"], member, *wanted)

    async def lag_summary(self, call: Call) -> object:
        view = await self._views.of(call)
        found = await self._lag(call)
        rows = [one for one in found.partitions if one.lag is not None]
        if not rows:
            raise not_found()
        return _summary(view.links, call["group"], rows)

    async def lags(self, call: Call) -> object:
        view, group = await self._views.of(call), call["group"]
        found = await self._lag(call)
        rows = sorted((one for one in found.partitions if one.lag is not None), key=lambda one: one.partition)
        return view.links.collection(
            "KafkaConsumerLagList",
            ("consumer-groups", group, "lags"),
            (_lag_shape(view.links, group, one) for one in rows),
        )

    async def lag(self, call: Call) -> object:
        view, wanted = await self._views.of(call), (call["topic"], call.path_number("partition"))
        for one in (await self._lag(call)).partitions:
            if one.partition == wanted and one.lag is not None:
                return _lag_shape(view.links, call["group"], one)
        raise not_found()

    async def _described(self, call: Call) -> Description:
        view, name = await self._views.of(call), call["group"]
        (found,) = await view.access.ask(lambda cluster: cluster.groups.describe(name))
        return found

    async def _found_member(self, call: Call) -> Member:
        for one in (await self._described(call)).members:
            if one.member_id == call["consumer"]:
                return one
        raise not_found()

    async def _lag(self, call: Call) -> GroupLag:
        view, name = await self._views.of(call), call["group"]
        (found,) = await view.access.ask(lambda cluster: cluster.groups.lag(name))
        return found


def shape(links: Links, group: Description) -> Shape:
    here = ("consumer-groups", group.group_id)
    return links.resource(
        "KafkaConsumerGroup", here, f"consumer-group={group.group_id}", consumer_group_id=group.group_id,
        is_simple=not group.members and not group.assignor, partition_assignor=group.assignor,
        state=_upper(group.state), type=group.type.upper(),
        is_mixed_consumer_group=any(one.is_upgraded is False for one in group.members),
        coordinator=links.related("brokers", group.coordinator.node_id),
        consumers=links.related(*here, "consumers"), lag_summary=links.related(*here, "lag-summary"),
    )  # fmt: skip


def _upper(state: str) -> str:
    """`PreparingRebalance` is PREPARING_REBALANCE."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", state).upper()


def _member(links: Links, group: str, one: Member) -> Shape:
    here = ("consumer-groups", group, "consumers", one.member_id)
    return links.resource(
        "KafkaConsumer", here, f"consumer-group={group}/consumer={one.member_id}", consumer_group_id=group,
        consumer_id=one.member_id, instance_id=one.instance_id or None, client_id=one.client_id,
        assignments=links.related(*here, "assignments"),
    )  # fmt: skip


def _assignment(links: Links, group: str, member: Member, topic: str, partition: int) -> Shape:
    here = (
        "consumer-groups",
        group,
        "consumers",
        member.member_id,
        "assignments",
        topic,
        "partitions",
        partition,
    )
    return links.resource(
        "KafkaConsumerAssignment", here,
        f"consumer-group={group}/consumer={member.member_id}/assignment={topic}/partition={partition}",
        consumer_group_id=group, consumer_id=member.member_id, topic_name=topic, partition_id=partition,
        partition=links.related("topics", topic, "partitions", partition),
        lag=links.related("consumer-groups", group, "lags", topic, "partitions", partition),
    )  # fmt: skip


def _lag_shape(links: Links, group: str, row: Progress) -> Shape:
    topic, partition = row.partition
    here = ("consumer-groups", group, "lags", topic, "partitions", partition)
    return links.resource(
        "KafkaConsumerLag", here, f"consumer-group={group}/lag={topic}/partition={partition}",
        consumer_group_id=group, topic_name=topic, partition_id=partition, **_reader("", row.member),
        current_offset=row.committed.offset if row.committed is not None else None,
        log_end_offset=row.end_offset, lag=row.lag,
    )  # fmt: skip


def _reader(prefix: str, member: Member | None) -> Shape:
    return {
        f"{prefix}consumer_id": member.member_id if member is not None else "",
        f"{prefix}instance_id": (member.instance_id or None) if member is not None else None,
        f"{prefix}client_id": member.client_id if member is not None else "",
    }


def _summary(links: Links, group: str, rows: list[Progress]) -> Shape:
    most = max(rows, key=lambda row: row.lag or 0)
    topic, partition = most.partition
    name = most.member.member_id if most.member is not None else ""
    return links.resource(
        "KafkaConsumerGroupLagSummary", ("consumer-groups", group, "lag-summary"),
        f"consumer-group={group}/lag-summary", consumer_group_id=group, **_reader("max_lag_", most.member),
        max_lag_topic_name=topic, max_lag_partition_id=partition, max_lag=most.lag,
        total_lag=sum(row.lag or 0 for row in rows),
        max_lag_consumer=links.related("consumer-groups", group, "consumers", name),
        max_lag_partition=links.related("topics", topic, "partitions", partition),
    )  # fmt: skip
