"""What the doctor says about facts: nothing about a healthy cluster, and of each fault what it is and what mends it."""

from __future__ import annotations

import math
import shlex
from importlib import import_module

import pytest

from penstock.admin.health import Health
from penstock.advice.doctor import Finding, Severity, with_connection
from penstock.advice.doctor.checks import ALL, NAMES, judge
from penstock.advice.doctor.checks.disks import Growth, full_after_s
from penstock.advice.doctor.facts import DirectoryFacts, Facts, GroupFacts, ReplicaFacts, ServiceFacts
from penstock.advice.doctor.finding import MAX_EVIDENCE
from penstock.advice.plan.limits import check as beyond
from penstock.advice.plan.measured import measure
from penstock.cli.verbs.app import cli, run
from penstock.model.ids import TopicPartition
from tests.unit.advice.ill_cluster import GB, NOW_MS, broker, facts, health, partition, topic, very_ill


def found(cluster: Facts, *only: str) -> list[Finding]:
    return judge(cluster, only)


def one(cluster: Facts, only: str) -> Finding:
    (finding,) = found(cluster, only)
    return finding


def test_a_healthy_cluster_has_no_findings() -> None:
    assert found(facts()) == []


def test_each_check_finds_its_fault_in_a_very_ill_cluster() -> None:
    assert {finding.check for finding in found(very_ill())} == set(NAMES)


def test_the_most_urgent_comes_first() -> None:
    ranks = [finding.severity.rank for finding in found(very_ill())]
    assert ranks == sorted(ranks)
    assert found(very_ill())[0].severity is Severity.ERROR


def test_a_finding_has_evidence_and_advice_and_never_too_much() -> None:
    for finding in found(very_ill()):
        assert finding.evidence, finding
        assert finding.advice.endswith("."), finding
        assert len(finding.evidence) <= MAX_EVIDENCE, finding
        assert "\n" not in finding.title, finding


def test_names_of_checks_are_different() -> None:
    assert len(set(NAMES)) == len(ALL)


@pytest.mark.parametrize("place", [None, "kafka.example.com:9092"])
def test_every_command_that_is_recommended_parses(place: str | None) -> None:
    commands = [
        command
        for finding in [*found(very_ill()), *beyond(measure(very_ill()))]
        for command in with_connection(
            finding.command or "", place, None if place is None else "my login"
        ).split("\n")
        if command
    ]
    assert len(commands) > 30
    for command in commands:
        check_command(command)


def check_command(command: str) -> None:
    """`--help` comes last, so that nothing is done: a name of a verb or an option that is not there fails before."""
    program, *words = shlex.split(command)
    if program == "penstock":
        assert run([word for word in words if word != "--help"] + ["--help"], cli) == 0, command
        return
    module = import_module(f"penstock.cli.kafka.{program.removeprefix('kafka-').replace('-', '_')}")
    module.TABLE.parse(words)


def test_a_command_says_where_the_cluster_is_and_how_one_logs_in() -> None:
    lines = "penstock topics list\nkafka-topics --list\npenstock up --data ./d"
    assert with_connection(lines, "h:1", "a b").split("\n") == [
        "penstock topics list -b h:1 --command-config 'a b'",
        "kafka-topics --list --bootstrap-server h:1 --command-config 'a b'",
        "penstock up --data ./d",
    ]


def test_names_are_quoted_for_a_shell() -> None:
    cluster = facts(
        topics=(topic("a; rm -rf b"),), partitions=(partition("a; rm -rf b", replicas=(1,), isr=(1,)),)
    )
    command = one(cluster, "replication").command
    assert command is not None
    assert shlex.split(command)[3] == "a; rm -rf b"


def test_min_isr_of_one_is_unsafe_with_three_replicas_and_equal_to_the_replicas_stops_writes() -> None:
    unsafe = one(facts(topics=(topic("orders", min_insync_replicas="1"),)), "min-isr")
    assert unsafe.command == "penstock configs set --topic orders min.insync.replicas=2"
    stopping = one(facts(topics=(topic("orders", min_insync_replicas="3"),)), "min-isr")
    assert "refused" in stopping.advice
    assert stopping.severity is Severity.WARNING
    impossible = one(facts(topics=(topic("orders", min_insync_replicas="4"),)), "min-isr")
    assert impossible.severity is Severity.ERROR


def test_one_replica_on_a_laptop_is_only_a_note() -> None:
    cluster = facts(
        brokers=(broker(1),), partitions=(partition("orders", leader=1, replicas=(1,), isr=(1,)),)
    )
    assert one(cluster, "replication").severity is Severity.NOTE


def test_a_broker_that_advertises_its_own_loopback_is_told_to_those_who_came_from_elsewhere() -> None:
    assert found(facts(bootstrap_hosts=("kafka.example.com",)), "reachable")[0].severity is Severity.ERROR
    assert found(facts(bootstrap_hosts=("localhost",)), "reachable") == []


def test_an_address_that_leads_to_another_cluster_is_told() -> None:
    cluster = facts(brokers=(broker(1), broker(2)._replace(cluster_id="another")))
    assert "another cluster" in one(cluster, "reachable").title


def lagging(before: int, now: int, *, committed: tuple[int, int], state: str = "Stable") -> Facts:
    part = partition("orders", end_before=before, end_offset=now)
    group = GroupFacts("billing", state, {part.partition: committed[1]}, {part.partition: committed[0]})
    return facts(partitions=(part,), groups=(group,))


def test_a_group_that_commits_each_five_seconds_does_not_seem_to_fall_behind() -> None:
    assert found(lagging(10_000, 20_000, committed=(9_900, 9_900)), "lag") == []
    assert found(lagging(10_000, 20_000, committed=(5_000, 14_000)), "lag") == []


def test_a_group_that_is_far_behind_and_falls_further_is_told() -> None:
    finding = one(lagging(100_000, 101_000, committed=(10, 510)), "lag")
    assert finding.severity is Severity.WARNING
    assert "falls behind" in finding.title
    assert "lag 99,990 → 100,490" in finding.evidence[0]


def test_a_group_that_does_not_move_at_all_is_an_error() -> None:
    assert one(lagging(100_000, 101_000, committed=(10, 10)), "lag").severity is Severity.ERROR


def test_a_group_that_catches_up_is_not_told() -> None:
    assert found(lagging(100_000, 101_000, committed=(10, 5_000)), "lag") == []


def test_a_group_without_members_is_idle_only_where_something_is_left_to_read() -> None:
    assert one(lagging(10, 10, committed=(4, 4), state="Empty"), "idle-groups").severity is Severity.WARNING
    assert found(lagging(10, 10, committed=(10, 10), state="Empty"), "idle-groups") == []
    assert found(lagging(10, 10, committed=(4, 4)), "idle-groups") == []


def test_marks_that_programs_keep_as_offsets_are_no_lag() -> None:
    part = partition("__penstock_spark_batches", end_offset=3)
    cluster = facts(
        partitions=(part,), groups=(GroupFacts("penstock-spark-q", "Empty", {part.partition: 8}),)
    )
    assert found(cluster, "lag", "idle-groups") == []


def test_a_committed_offset_that_the_log_no_longer_has_is_told() -> None:
    part = partition("orders", start_offset=500)
    cluster = facts(partitions=(part,), groups=(GroupFacts("billing", "Stable", {part.partition: 100}),))
    finding = one(cluster, "lag")
    assert "penstock groups reset billing --topic orders" in (finding.command or "")


def test_one_key_that_is_everywhere_makes_a_hot_partition() -> None:
    parts = tuple(
        partition("orders", each, end_offset=1000 + (9_000 if each == 2 else 300)) for each in range(4)
    )
    assert "orders-2 gets 91%" in one(facts(partitions=parts), "hot-partitions").evidence[0]


def test_an_even_topic_has_no_hot_partition_and_a_quiet_one_is_not_looked_at() -> None:
    even = tuple(partition("orders", each, end_offset=4_000) for each in range(4))
    quiet = tuple(partition("orders", each, end_offset=1000 + 50 * (each == 0)) for each in range(4))
    assert (
        found(facts(partitions=even), "hot-partitions")
        == found(facts(partitions=quiet), "hot-partitions")
        == []
    )


def filling(rate: int, *, free: int, **settings: str) -> Facts:
    part = partition("orders", end_offset=2000)
    copy = ReplicaFacts(1, "/data", part.partition, 10 * GB + rate * 10, 10 * GB)
    return facts(
        topics=(topic("orders", **settings),),
        partitions=(part,),
        replicas=(copy,),
        directories=(DirectoryFacts(1, "/data", 1000 * GB, free),),
    )


def test_a_disk_that_fills_before_retention_deletes_is_told_with_the_days() -> None:
    finding = one(filling(1_000_000, free=500 * GB), "disk")
    assert "is full in 6 days" in finding.title
    assert finding.severity is Severity.WARNING
    assert "retention.ms=248400000" in (finding.command or "")


def test_a_disk_that_fills_tomorrow_is_an_error() -> None:
    assert one(filling(5_000_000, free=500 * GB), "disk").severity is Severity.ERROR


def test_a_retention_that_deletes_in_time_fills_no_disk() -> None:
    assert found(filling(1_000_000, free=700 * GB), "disk") == []
    assert found(filling(5_000_000, free=500 * GB, retention_bytes=str(100 * GB)), "disk") == []


def test_partitions_stop_to_grow_one_after_the_other() -> None:
    grown = [Growth("a", 10.0, 100.0), Growth("b", 1.0, math.inf)]
    assert full_after_s(grown, 210) == 10 + 100
    assert full_after_s(grown[:1], 100.0) == 10
    assert full_after_s(grown[:1], 101) is None
    assert full_after_s([], 0) is None


def test_a_nearly_full_disk_is_told_though_nothing_is_written() -> None:
    cluster = facts(directories=(DirectoryFacts(1, "/data", 1000 * GB, 30 * GB),))
    assert one(cluster, "disk").severity is Severity.ERROR


def test_clocks_are_judged_by_what_brokers_wrote_themselves() -> None:
    ahead = partition("__consumer_offsets", newest_ms=NOW_MS + 5_000)
    behind = partition("__consumer_offsets", 1, end_offset=1001, newest_ms=NOW_MS - 20_000)
    old = partition("__consumer_offsets", 2, newest_ms=NOW_MS - 20_000)
    users = partition("orders", newest_ms=NOW_MS + 5_000)
    evidence = one(facts(partitions=(ahead, behind, old, users)), "clocks").evidence
    assert evidence == ("broker 1 is ahead by at least 5.0 s", "broker 2 is behind by at least 10.0 s")


def test_records_of_the_future_are_told_with_their_date() -> None:
    finding = one(facts(partitions=(partition("orders", newest_ms=NOW_MS * 1000),)), "clocks")
    assert "orders-0: newest" in finding.evidence[0]
    assert "message.timestamp.after.max.ms" in (finding.command or "")


def test_listeners_on_loopback_and_of_controllers_are_not_open() -> None:
    controllers = broker(
        1, listeners="PLAINTEXT://127.0.0.1:1,CONTROLLER://:2", controller_listener_names="CONTROLLER"
    )
    assert found(facts(brokers=(controllers,)), "security") == []
    assert (
        one(facts(brokers=(broker(1, listeners="PLAINTEXT://:9092"),)), "security").severity
        is Severity.WARNING
    )


def test_leaders_that_are_not_preferred_are_a_note_while_they_are_few() -> None:
    few: Health = very_ill().health or health()
    assert (
        one(facts(health=health(not_preferred=few.not_preferred)), "preferred-leaders").severity
        is Severity.WARNING
    )
    assert (
        one(
            facts(health=health(not_preferred=few.not_preferred, num_partitions=1000)), "preferred-leaders"
        ).severity
        is Severity.NOTE
    )


def test_a_dead_member_of_a_stack_is_told_with_how_to_start_it() -> None:
    finding = one(facts(services=(ServiceFacts("registry", "not running", "./d"),)), "services")
    assert finding.command == "penstock up --only registry --data ./d"


def test_what_could_not_be_seen_is_told_and_nothing_is_made_up() -> None:
    blind = Facts(health=None, unseen=("groups of broker 1: Not authorized",))
    assert [finding.check for finding in found(blind)] == ["permissions"]


def test_a_cluster_that_does_not_answer_is_a_finding() -> None:
    finding = one(Facts(health=None, unreachable="cannot reach a broker at h:1"), "reachable")
    assert finding.severity is Severity.ERROR
    assert "h:1" in finding.evidence[0]


def test_groups_are_asked_for_partitions_that_are_gone_without_a_fault() -> None:
    group = GroupFacts("billing", "Empty", {TopicPartition("deleted", 0): 7})
    assert found(facts(groups=(group,)), "lag", "idle-groups") == []
