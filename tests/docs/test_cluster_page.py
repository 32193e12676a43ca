"""The page about clusters: its commands run one after the other, on a cluster of their own."""

import os
import subprocess
from pathlib import Path

from tests.cli.boxes import TestBox
from tests.docs.pages import HOW_TO, ROOT
from tests.docs.test_commands_shown import commands

DEADLINE_SECONDS = 120


def run(command: str, box: TestBox) -> int:
    """The page's cluster is in ./cluster, its first broker at localhost:9092."""
    text = command.replace("./cluster", str(box.directory))
    if "penstock up --brokers 3" in text:
        text += " --port 0 --zookeeper-port 0"
        bootstrap = ""
    else:
        bootstrap = box.bootstrap
        text = text.replace("localhost:9092", bootstrap)
    done = subprocess.run(
        ["timeout", "-k", "5", str(DEADLINE_SECONDS), "sh", "-c", text],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PENSTOCK_BOOTSTRAP": bootstrap},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    is_judgement = "penstock status" in command  # 1 means that a broker is missing, as the page says
    assert done.returncode in ((0, 1) if is_judgement else (0,)), f"{command}\n{done.stdout}\n{done.stderr}"
    return done.returncode


def test_the_commands_of_the_page_run_one_after_the_other(tmp_path: Path) -> None:
    box = TestBox(tmp_path / "cluster")
    try:
        judgements = []
        for command in commands(HOW_TO / "cluster.md"):
            code = run(command, box)
            if "penstock status" in command:
                judgements.append(code)
        assert judgements == [0, 1]
        assert box.run("down").code == 0
    finally:
        box.close()
