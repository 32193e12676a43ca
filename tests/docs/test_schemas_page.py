"""The page about values with schemas: its commands answer what it says, and its processor runs."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from penstock.testing.penstock_broker import PenstockBroker
from tests.docs.pages import HOW_TO, ROOT, blocks
from tests.registry.registries import RegistryProcess

PAGE = (HOW_TO / "schemas-on-the-command-line.md").read_text()
DEADLINE_S = 60
SHOWN_IDS = '{"id":1,"note":{"string":"fragile"}}\t1\n{"id":2,"note":null}\t1\n{"id":3,"note":null}\t1\n'


def shown() -> list[tuple[str, str]]:
    """Commands and what the page says that they answer."""
    found: list[tuple[str, str]] = []
    for line in (line for block in blocks(PAGE, "console") for line in block.splitlines()):
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, answer = found.pop()
            found.append((command, f"{answer}{line}\n"))
    return found


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    options = {"group.initial.rebalance.delay.ms": "0"}
    with (
        PenstockBroker(tmp_path, options=options) as broker,
        closing(RegistryProcess(broker.bootstrap, tmp_path / "registry")) as registry,
    ):

        def here(text: str) -> str:
            return text.replace("localhost:9092", broker.bootstrap).replace(
                "http://localhost:8081", registry.url
            )

        environment = {
            **os.environ,
            "PENSTOCK_BOOTSTRAP": broker.bootstrap,
            "PENSTOCK_SCHEMA_REGISTRY": registry.url,
        }
        for command, answer in shown():
            done = subprocess.run(
                ["timeout", str(DEADLINE_S), "sh", "-c", here(command)],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            answer = SHOWN_IDS if "print.schema.ids" in command else answer
            assert (done.returncode, done.stdout) == (0, answer), f"{command}\n{done.stderr}"
        (code,) = blocks(PAGE, "python")
        code = here(code).replace('"orders",', f'"orders", bootstrap="{broker.bootstrap}",')
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.stdout == "order 1 fragile\norder 2 None\norder 3 None\n", done.stderr
