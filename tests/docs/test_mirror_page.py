"""The page about mirroring: what it shows is typed, between two brokers."""

import re
import subprocess
from pathlib import Path

import pytest

from penstock.admin import Cluster
from penstock.client.property_files import read_properties
from penstock.mirror.flows import read_flows
from penstock.testing.processes import start_process
from tests.conftest import StartBroker
from tests.docs.pages import HOW_TO, ROOT, blocks
from tests.mirror.mirrors import count, read_as, until, write

PAGE = (HOW_TO / "mirror-clusters.md").read_text()
pytestmark = pytest.mark.timeout(180)


def commands() -> list[str]:
    return [
        line.strip()
        for block in blocks(re.sub(r"^    ", "", PAGE, flags=re.MULTILINE), "sh")
        for line in block.splitlines()
    ]


def test_what_the_page_shows_works(start_broker: StartBroker, tmp_path: Path) -> None:
    a, b = start_broker(name="a"), start_broker(name="b")
    write(a.bootstrap, "orders", range(100))
    assert len(read_as(a.bootstrap, "billing", "orders", 40)) == 40

    def here(text: str) -> str:
        return text.replace("localhost:9092", a.bootstrap).replace("localhost:9093", b.bootstrap)

    (file,) = re.findall(r'^```properties title="(mm2.properties)"\n', PAGE, re.MULTILINE)
    (properties,) = re.findall(
        r'^```properties title="mm2.properties"\n(.*?)^```', PAGE, re.DOTALL | re.MULTILINE
    )
    (tmp_path / file).write_text(here(properties))
    plan, copy, finish, mirror = [
        here(line).replace("bin/penstock", f"{ROOT}/bin/penstock") for line in commands()
    ]
    assert "orders" in typed(plan, tmp_path)
    running = start_process(copy.split(), name="migrate", log_path=tmp_path / "migrate.log")
    try:
        running.wait_for_line("In step. To switch", timeout_s=40)
    finally:
        running.stop()
    assert "billing" in typed(finish, tmp_path)
    assert len(read_as(b.bootstrap, "billing", "orders", 60)) == 60
    mirroring = start_process(
        mirror.split(), name="mirror", log_path=tmp_path / "mirror.log", working_directory=tmp_path
    )
    try:
        until(lambda: count(b.bootstrap, "A.orders") == 100, "A's records at B")
        until(lambda: count(a.bootstrap, "B.orders") == 100, "B's records at A")
        with Cluster(b.bootstrap) as cluster:
            until(
                lambda: {place.topic for place in cluster.groups.committed("billing")} >= {"A.orders"},
                "the group",
            )
    finally:
        assert mirroring.stop() == 0


def test_the_pages_file_has_the_flows_that_it_says(tmp_path: Path) -> None:
    (properties,) = re.findall(
        r'^```properties title="mm2.properties"\n(.*?)^```', PAGE, re.DOTALL | re.MULTILINE
    )
    file = tmp_path / "mm2.properties"
    file.write_text(properties)
    assert [str(flow) for flow in read_flows(read_properties(str(file))) if flow.is_enabled] == [
        "A->B",
        "B->A",
    ]


def typed(command: str, folder: Path) -> str:
    done = subprocess.run(
        command.split(), cwd=folder, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
