"""A cluster while it is upgraded: brokers of the previous commit beside one of this commit."""

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from penstock.testing.clusters import create_topic, wait_until_in_sync
from tests.cluster.clients import SteadyProducer, wait_for_leader
from tests.cluster.conftest import StartCluster
from tests.crash.plain_client import read_all

ROOT = Path(__file__).resolve().parents[2]
# In commits without it a leader could wait for ever after another broker was stopped.
OLDEST_WITH = "tests/unit/broker/test_refused_isr.py"
MAX_COMMITS = 50


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)


def commits() -> list[str]:
    """Of which a broker may be part of a cluster, the newest first."""
    listed = git("rev-list", "--first-parent", "-n", str(MAX_COMMITS), "HEAD").stdout.decode().split()
    return [each for each in listed if git("cat-file", "-e", f"{each}:{OLDEST_WITH}").returncode == 0]


@pytest.fixture(scope="module")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the previous commit; where history does not reach so far, of the oldest that it has, or this one's."""
    directory = tmp_path_factory.mktemp("previous")
    if not (found := commits()[:2]):
        shutil.copytree(ROOT / "src", directory / "src", ignore=shutil.ignore_patterns("__pycache__"))
        return directory / "src"
    archive = git("archive", "--format=tar", found[-1], "src").stdout
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
