"""`penstock migrate`: a plan, everything copied, the groups behind the last record that they have read."""

import json
import subprocess

import pytest

from penstock.admin import Cluster
from tests.clients.admin import create_topic
from tests.mirror.conftest import Clusters
from tests.mirror.mirrors import PENSTOCK, numbers, read, read_as, write

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def moved(clusters: Clusters) -> Clusters:
    """A topic written in transactions, one that is empty, and two groups."""
    create_topic(clusters.a, "orders", partitions=2, configs={"retention.ms": "-1"})
    create_topic(clusters.a, "empty")
    for start in range(0, 600, 100):
        write(clusters.a, "orders", range(start, start + 100), partitions=2, transactional="w")
        write(clusters.a, "orders", [-1], transactional="w", aborts=True)
    read_as(clusters.a, "billing", "orders", 250)
    read_as(clusters.a, "audit", "orders", 600)
    return clusters


def migrate(clusters: Clusters, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [*PENSTOCK, "migrate", "--from", clusters.a, "--to", clusters.b, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def test_a_plan_tells_what_would_be_done(moved: Clusters) -> None:
    done = migrate(moved, "--dry-run", "-o", "json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert [(one["name"], one["partitions"], one["at_target"]) for one in plan["topics"]] == [
        ("empty", 1, "is made"),
        ("orders", 2, "is made"),
    ]
    assert plan["topics"][1]["size_bytes"] > 0
    assert [one["name"] for one in plan["groups"]] == ["audit", "billing"]
    assert plan["problems"] == []
    with Cluster(moved.b) as b:
        assert b.topics.list() == []
    shown = migrate(moved, "--dry-run")
    assert "orders" in shown.stdout
    assert "What does not come along" in shown.stdout


def test_groups_read_each_record_exactly_once(moved: Clusters) -> None:
    done = migrate(moved, "--until-in-step")
    assert done.returncode == 0, done.stderr
    assert "lag 0" in done.stderr
    write(moved.a, "orders", range(600, 700), partitions=2)
    done = migrate(moved, "--finish", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert [(one["group"], one["is_set"]) for one in json.loads(done.stdout)["groups"]] == [
        ("audit", True),
        ("billing", True),
    ]
    assert read(moved.b, "orders") == read(moved.a, "orders")
    assert sorted(read_as(moved.b, "audit", "orders", 100)) == list(range(600, 700))
    with Cluster(moved.b) as b:
        before = sum(one.offset for one in b.groups.committed("billing").values())
        assert before > 0
    rest = read_as(moved.b, "billing", "orders", 450)
    assert len(set(rest)) == 450
    assert b_names(moved) == {"empty", "orders"}
    assert numbers(read(moved.b, "orders")) == list(range(700))


def b_names(clusters: Clusters) -> set[str]:
    with Cluster(clusters.b) as b:
        return {
            one.name
            for one in b.topics.list()
            if not one.name.startswith("mm2-") and ".checkpoints." not in one.name
        }


def test_one_cluster_cannot_move_to_itself(moved: Clusters) -> None:
    done = migrate(Clusters(moved.a, moved.a), "--dry-run")
    assert done.returncode == 1
    assert done.stderr == "penstock: --from and --to name the same cluster\n"
