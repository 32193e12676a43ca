"""penstock apply: what a file says shall be in a cluster that is there."""

from __future__ import annotations

from pathlib import Path

from penstock.admin import Cluster
from penstock.sql.engine import headless
from penstock.stack.contents import statements
from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import run_command

FILE = """
topics:
  applied-orders: {partitions: 2, configs: {cleanup.policy: compact}}
"""


def test_topics_are_made_in_any_cluster_after_a_look_at_what_would_be_done(
    broker: PenstockBroker, tmp_path: Path
) -> None:
    file = tmp_path / "penstock.yaml"
    file.write_text(FILE)
    apply = ("penstock", "apply", "--file", str(file), "-b", broker.bootstrap)
    try:
        dry = run_command(*apply, "--dry-run")
        assert dry.code == 0, dry.err
        assert "topic applied-orders would be made" in dry.err
        with Cluster(broker.bootstrap) as cluster:
            assert "applied-orders" not in {one.name for one in cluster.topics.list()}
        assert "topic applied-orders was made" in run_command(*apply).err
        assert "1 as they shall be, 0 made or changed" in run_command(*apply).err
        file.write_text(
            FILE.replace("partitions: 2", "partitions: 1").replace("{cleanup.policy: compact}", "{}")
        )
        differs = run_command(*apply)
        assert differs.code == 0
        assert f"has 2 partitions, and 1 in {file}:3: partitions cannot be taken away" in differs.err
        assert "penstock configs delete --topic applied-orders cleanup.policy takes it away" in differs.err
    finally:
        with Cluster(broker.bootstrap) as cluster:
            cluster.topics.delete("applied-orders")


def test_a_script_may_have_what_a_server_without_a_prompt_takes() -> None:
    assert statements.MAY_STAND == headless.MAY_STAND


def test_a_file_that_needs_services_says_which_are_missing(broker: PenstockBroker, tmp_path: Path) -> None:
    (tmp_path / "o.avsc").write_text('{"type": "string"}')
    (tmp_path / "penstock.yaml").write_text("registry:\nschemas:\n  o-value: {file: o.avsc}\n")
    done = run_command("penstock", "apply", "-b", broker.bootstrap, cwd=tmp_path)
    assert done.code == 1
    assert "penstock.yaml has schemas, and there is no schema registry to bring them to" in done.err
