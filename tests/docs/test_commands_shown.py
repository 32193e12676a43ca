"""Every command that the README and the docs show is run, in the order in which a reader meets them."""

import itertools
import re
import subprocess
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port
from tests.docs.pages import HOW_TO, ROOT, blocks

CLUSTER_PAGE = ROOT / "docs" / "how-to" / "cluster.md"  # starts brokers of its own: see test_cluster_page.py
SECURE_PAGE = ROOT / "docs" / "how-to" / "secure-a-cluster.md"  # so does this: see test_secure_page.py
REGISTRY_PAGE = ROOT / "docs" / "how-to" / "schema-registry.md"  # and this: see test_registry_page.py
STACK_PAGE = HOW_TO / "stack.md"  # a whole stack: see test_stack_page.py
SQL_PAGE = HOW_TO / "sql.md"  # and a SQL server: see test_sql_page.py
SCHEMAS_PAGE = HOW_TO / "schemas-on-the-command-line.md"  # needs a registry: see test_schemas_page.py
CONNECT_PAGES = (
    HOW_TO / "connect.md",
    HOW_TO / "write-a-connector.md",
    *HOW_TO.glob("connectors-*.md"),
)  # start workers
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "from-kafka").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    *sorted(
        set(HOW_TO.glob("*.md"))
        - {CLUSTER_PAGE, SECURE_PAGE, REGISTRY_PAGE, SCHEMAS_PAGE, SQL_PAGE, STACK_PAGE, *CONNECT_PAGES}
    ),
]
DEADLINE_SECONDS = 60
OPTIONS = {
    "security.md": {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
}
"""Of the broker of a page, by the page's name."""
PYTHON = ROOT / ".venv" / "bin" / "python"


def commands(page: Path) -> list[str]:
    """The lines of console blocks that start with `$`."""
    return [
        line[2:]
        for block in blocks(page.read_text(), "console")
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def broker_commands(page: Path) -> list[str]:
    joined = [block.replace("\\\n", " ") for block in blocks(page.read_text(), "sh")]
    return [
        line.strip()
        for block in joined
        for line in block.splitlines()
        if line.startswith("bin/penstock broker")
    ]


def run(command: str, broker: PenstockBroker) -> None:
    """The pages' broker is at localhost:9092 and keeps its files in ./data."""
    port = broker.port
    text = command.replace("localhost:9092", f"localhost:{port}").replace("./data", str(broker.data_dir))
    done = subprocess.run(
        # timeout ends everything that the shell started; subprocess's own would only end the shell
        ["timeout", "-k", "5", str(DEADLINE_SECONDS), "sh", "-c", text],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PENSTOCK_BOOTSTRAP": f"localhost:{port}", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_the_commands_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    with PenstockBroker(tmp_path, options=OPTIONS.get(page.name)) as broker:
        for command in commands(page):
            run(command, broker)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if broker_commands(page)], ids=lambda page: page.name
)
def test_the_brokers_of_a_page_start(page: Path, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("num.partitions=3\n")
    for number, command in enumerate(broker_commands(page)):
        words = command.split()
        assert words[0] == "bin/penstock"
        ports = {port: str(free_port()) for port in re.findall(r"(?<=://:)\d+|(?<=--port )\d+", command)}
        text = " ".join(words[1:])
        for port, free in ports.items():
            text = re.sub(rf"(?<=://:){port}\b|(?<=--port ){port}\b", free, text)
        if not ports:
            text += f" --port {free_port()}"
        if "--data" not in text:
            text += f" --data data-{number}"
        process = subprocess.Popen(
            [ROOT / "bin" / "penstock", *text.split()],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"penstock: listening on ")
        finally:
            process.terminate()
            assert process.wait(DEADLINE_SECONDS) == 0
            assert process.stdout is not None
            process.stdout.close()


def test_the_python_shown_in_the_readme_runs(broker: PenstockBroker) -> None:
    for block in blocks((ROOT / "README.md").read_text(), "python"):
        code = block.replace("localhost:9092", broker.bootstrap)
        done = subprocess.run(
            [PYTHON, "-c", code], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr


def test_every_link_between_the_pages_leads_somewhere() -> None:
    for page in [*PAGES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        prose = re.sub(r"RULE:\[[^]]*\]\([^)]*\)", "", page.read_text())  # looks alike: RULE:[2:$1](kafka)
        for target in re.findall(r"\]\(([^)#]+)\)", prose):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_row_of_a_table_is_one_line() -> None:
    """What is wrapped is no row any more on the site: a row ends with its line."""
    broken = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        is_code = False
        lines = page.read_text().split("\n")
        for number, (line, following) in enumerate(itertools.pairwise(lines), start=1):
            is_code ^= line.lstrip().startswith("```")
            goes_on = following and not following.startswith(("|", "#", "<", " "))
            if line.startswith("|") and not is_code and goes_on:
                broken.append(f"{page.relative_to(ROOT)}:{number}")
    assert broken == []
