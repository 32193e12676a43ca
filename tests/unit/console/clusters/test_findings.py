"""What a page says is wrong."""

import pytest

from penstock.admin.health import DamagedPartition, Told
from penstock.console.clusters.findings import ERROR, NOTE, WARNING, findings
from penstock.console.words import words
from penstock.model.ids import TopicPartition
from tests.unit.console.clusters.making import broker, group, healthy, state, view


def test_a_healthy_cluster_has_nothing_to_say() -> None:
    assert findings(view(brokers=[broker(1)])) == []


def test_partitions_without_a_leader_are_an_error_and_named() -> None:
    health = healthy()._replace(offline=[state(f"topic-{number}", leader=-1) for number in range(5)])
    (found,) = findings(view(health=health))
    assert (found.severity, found.key, found.amount) == (ERROR, "offline", 5)
    assert found.named == "topic-0-0, topic-1-0, topic-2-0 …"


def test_what_is_below_min_isr_is_not_told_twice() -> None:
    behind = state("orders", isr=[1])
    health = healthy()._replace(under_replicated=[behind], below_min_isr=[behind])
    assert [one.key for one in findings(view(health=health))] == ["below_min_isr"]


def test_a_replica_that_is_behind_is_a_warning() -> None:
    health = healthy()._replace(under_replicated=[state("orders", isr=[1])])
    assert [(one.severity, one.key) for one in findings(view(health=health))] == [
        (WARNING, "under_replicated")
    ]


def test_brokers_that_are_away_or_silent_and_disks_that_are_full() -> None:
    found = findings(
        view(
            brokers=[broker(1, answers=False), broker(2, usable_bytes=5)],
            health=healthy()._replace(missing_brokers=[3], controller=None),
        )
    )
    assert [one.key for one in found] == ["no_controller", "missing_brokers", "silent_brokers", "disk_full"]


def test_damage_that_brokers_tell_of() -> None:
    damage = DamagedPartition(TopicPartition("orders", 0), 2, 17, "checksum", 1)
    (found,) = findings(view(health=healthy()._replace(told=Told(damaged=(damage,)))))
    assert (found.key, found.named) == ("damaged", "orders-0 (2)")


def test_groups_whose_offsets_we_may_not_read_are_a_note() -> None:
    (found,) = findings(view(groups=[group("billing", error="not for you")]))
    assert (found.severity, found.key, found.named) == (NOTE, "groups_refused", "billing")


@pytest.mark.parametrize("language", ["en", "pt"])
def test_each_finding_has_words_for_what_is_wrong_and_what_to_do(language: str) -> None:
    keys = """no_controller missing_brokers silent_brokers offline below_min_isr under_replicated lost damaged
        failed_directories without_session disagreeing disk_full not_preferred groups_refused"""
    for key in keys.split():
        assert f"overview.{key}" in words(language)
        assert f"overview.{key}_todo" in words(language)
