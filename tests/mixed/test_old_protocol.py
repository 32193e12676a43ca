"""A cluster whose brokers speak to one another as releases before 3.5 did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from simulation.apache.mixed_cluster import KAFKA, MixedCluster
from tests.mixed.brokers import nodes

SAID = "broker 1 has inter.broker.protocol.version=3.4: raise it to 3.5 or later on every broker first"


def test_a_broker_neither_joins_nor_starts_there(tmp_path: Path) -> None:
    """Its followers would not say which registration they are, and never be in sync behind ours."""
    with MixedCluster(
        tmp_path / "cluster", {1: KAFKA}, kafka_properties={"inter.broker.protocol.version": "3.4"}
    ) as cluster:
        file = tmp_path / "server.properties"
        file.write_text(
            f"broker.id=2\nzookeeper.connect={cluster.zookeeper.address}\n"
            f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\n"
        )
        before = nodes(cluster)
        for words in (["join", "--config", str(file)], ["broker", "--config", str(file)]):
            command = [sys.executable, "-m", "penstock", *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert SAID in done.stdout + done.stderr
            assert done.returncode == 1
            assert "Traceback" not in done.stderr
        assert nodes(cluster) == before
