"""A cluster while it is upgraded: brokers of the previous commit beside one of this commit."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from penstock.testing.clusters import create_topic, wait_until_in_sync
from tests.cluster.clients import SteadyProducer, wait_for_leader
from tests.cluster.conftest import StartCluster
from tests.crash.plain_client import read_all

ROOT = Path(__file__).resolve().parents[2]
CLUSTER_CODE = "src/penstock/broker/cluster/membership.py"
MAX_COMMITS = 50


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)


def previous_commit() -> str:
    """The one before this that has clusters; where history holds none, this one."""
    listed = git("rev-list", "--first-parent", "-n", str(MAX_COMMITS), "HEAD").stdout.decode().split()
    with_clusters = [
        each for each in listed if git("cat-file", "-e", f"{each}:{CLUSTER_CODE}").returncode == 0
    ]
    assert with_clusters, "no commit has clusters"
    return with_clusters[1] if len(with_clusters) > 1 else with_clusters[0]


@pytest.fixture(scope="module")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("previous")
    archive = git("archive", "--format=tar", previous_commit(), "src").stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(directory, filter="data")
    return directory / "src"


def test_brokers_of_this_and_of_the_previous_commit_replicate_and_take_over_from_each_other(
    start_cluster: StartCluster, old_source: Path
) -> None:
    old = {"PYTHONPATH": str(old_source)}
    cluster = start_cluster(environment_of={1: old, 2: old})
    # The new one leads, then an old one, then the new one again.
    create_topic(cluster.bootstrap, "mixed", assignment=[[3, 1, 2]], config={"min.insync.replicas": "2"})
    wait_until_in_sync(cluster.bootstrap, ["mixed"])
    with SteadyProducer(cluster.bootstrap, "mixed") as producer:
        producer.wait_for_more()
        cluster.stop(3)
        wait_for_leader(cluster, "mixed", other_than=3)
        producer.wait_for_more()
        cluster.start(3)
        wait_until_in_sync(cluster.bootstrap, ["mixed"])
        cluster.stop(1)
        assert wait_for_leader(cluster, "mixed", other_than=1) == 3
        producer.wait_for_more()
        cluster.start(1)
        wait_until_in_sync(cluster.bootstrap, ["mixed"])
        sent = producer.finish()
    assert read_all(cluster.bootstrap, "mixed") == sent
