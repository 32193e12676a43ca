"""A broker of the commit before beside one of this tree: what a cluster is while it is being upgraded."""

import io
import subprocess
import tarfile
from pathlib import Path

from penstock.testing.clusters import create_topic, describe, wait_until_in_sync
from tests.cluster.clients import SteadyProducer, wait_for_leader
from tests.cluster.conftest import StartCluster
from tests.crash.plain_client import read_all

ROOT = Path(__file__).parents[2]
FIRST_WITH_CLUSTERS = "src/penstock/broker/cluster/membership.py"
LOOKED_AT = 20


def git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, timeout=60, check=False)


def commit_before() -> str:
    """The last whose code is not that of this tree; where there is none that knows clusters, the very last."""
    for commit in git("rev-list", f"-n{LOOKED_AT}", "HEAD", "--", "src").stdout.decode().split():
        is_other = git("diff", "--quiet", commit, "--", "src").returncode != 0
        if is_other and git("cat-file", "-e", f"{commit}:{FIRST_WITH_CLUSTERS}").returncode == 0:
            return commit
    return "HEAD"


def code_of(commit: str, directory: Path) -> Path:
    archive = git("archive", commit, "src").stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(directory, filter="data")
    return directory / "src"


def test_brokers_of_two_versions_lead_and_follow_each_other(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    code = code_of(commit_before(), tmp_path / "before")
    cluster = start_cluster(
        brokers=2,
        options={"offsets.topic.replication.factor": "2"},
        environment_of={2: {"PYTHONPATH": str(code)}},
    )
    create_topic(cluster.bootstrap, "upgraded", assignment=[[1, 2]])
    wait_until_in_sync(cluster.bootstrap, ["upgraded"])
    with SteadyProducer(cluster.bootstrap, "upgraded") as producer:
        for leader, other in ((1, 2), (2, 1)):
            producer.wait_for_more()
            cluster.kill(leader)  # and the controller is the other one by now
            assert wait_for_leader(cluster, "upgraded", other_than=leader) == other
            assert describe(cluster.address(other)).controller_id == other
            producer.wait_for_more()
            create_topic(cluster.address(other), f"made-by-{other}", replication_factor=1)
            cluster.start(leader)
            wait_until_in_sync(cluster.bootstrap, ["upgraded"])
        sent = producer.finish()
    assert read_all(cluster.bootstrap, "upgraded") == sent
    assert (code / "penstock" / "broker" / "__pycache__").exists(), "broker 2 has not run the other code"
