"""The container files, as far as they can be tried without a container engine.

Both are linted. What the Dockerfile installs is installed from the files that it copies, with folders of the test in place
of the image's. Then its command and its health check run there, with the variables of each service in compose.yaml.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.testing.penstock_broker import READY_LINE
from penstock.testing.processes import free_port, start_process
from penstock.testing.zookeeper import ZooKeeperServer
from tests.docs.pages import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
COMPOSE = ROOT / "deploy" / "compose.yaml"
PROGRAMS = Path(sys.executable).parent
DEADLINE_SECONDS = 400

pytestmark = pytest.mark.timeout(900)


def instructions(name: str) -> list[str]:
    """What stands behind each instruction of that name, in order."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [text for word, _, text in (line.partition(" ") for line in joined.splitlines()) if word == name]


def services() -> dict[str, dict[str, Any]]:
    return yaml.safe_load(COMPOSE.read_text())["services"]


BROKERS = [name for name in services() if name.startswith("broker")]


class Image:
    """The image's folders under `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.programs = root / "opt" / "penstock" / "bin"

    def there(self, text: str) -> str:
        """`text` with the folders of the image at `root`."""
        return re.sub(r"(?<![\w.])/(opt/penstock|data|home/penstock)\b", rf"{self.root}/\1", text)

    def variables(self) -> dict[str, str]:
        """Those of the ENV instruction. The image's other programs are this machine's."""
        pairs = (pair.split("=", 1) for text in instructions("ENV") for pair in shlex.split(text))
        return {name: self.there(value) for name, value in pairs}


def run(command: str, directory: Path, variables: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        ["timeout", "-k", "5", str(DEADLINE_SECONDS), "sh", "-c", command],
        cwd=directory,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    built = Image(tmp_path_factory.mktemp("image"))
    source = built.root / "src"
    source.mkdir()
    for text in instructions("COPY"):
        *names, target = text.split()
        if names[0].startswith("--from"):
            continue  # the second stage finds it where the first one put it
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name, source / target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
                )
            else:
                shutil.copy(ROOT / name, source / target)
    variables = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    for text in instructions("RUN"):
        # The user of the test stands for the image's; pip need not fetch again what it fetched for the tests' own environment.
        command = re.sub(r"--owner=\d+ --group=\d+", f"--owner={os.getuid()} --group={os.getgid()}", text)
        run(built.there(command).replace(" --no-cache-dir", ""), source, variables)
    yield built
    shutil.rmtree(built.root)


@contextmanager
def container(image: Image, service: str, data: Path, zookeeper: str = "") -> Iterator[dict[str, str]]:
    """The image's command with a service's variables, on free ports; gives the variables of what runs beside it."""
    given = services()[service].get("environment", {})
    outside = str(free_port())
    inside = str(free_port())
    published = services()[service]["ports"][0].split(":")[-2]
    variables = {**image.variables(), "KAFKA_LOG_DIRS": str(data)}
    for name, value in given.items():
        text = re.sub(r"//broker(-\d)?:", "//localhost:", value)
        text = re.sub(rf"\b({published}|9092)\b", outside, text)
        variables[name] = re.sub(r"\b9093\b", inside, text).replace("zookeeper:2181", zookeeper)
    variables.setdefault("PENSTOCK_BOOTSTRAP", f"localhost:{outside}")
    command = json.loads(instructions("CMD")[0])
    process = start_process(
        [str(image.programs / command[0]), *command[1:]],
        name=service,
        log_path=data.with_suffix(".log"),
        environment=variables,
        working_directory=image.root,
    )
    try:
        process.wait_for_line(READY_LINE, timeout_s=120)
        yield variables
    finally:
        assert process.stop(timeout_s=120) == 0
        assert "Traceback" not in data.with_suffix(".log").read_text()


def check_health(image: Image, variables: dict[str, str]) -> None:
    (text,) = instructions("HEALTHCHECK")
    run(shlex.join(json.loads(text[text.index("CMD ") + 4 :])), image.root, variables)


def test_the_dockerfile_passes_its_linter() -> None:
    run(f"{PROGRAMS / 'hadolint'} {DOCKERFILE}", ROOT)


def test_compose_yaml_keeps_to_the_specification() -> None:
    run(f"{PROGRAMS / 'check-jsonschema'} --builtin-schema vendor.compose-spec {COMPOSE}", ROOT)


def test_the_image_does_not_run_as_root_and_keeps_its_data_in_a_volume() -> None:
    assert instructions("USER") == ["1000:1000"]
    assert instructions("VOLUME") == ["/data"]
    assert instructions("EXPOSE") == ["9092"]


def test_every_file_that_the_build_copies_gets_past_the_ignore_file() -> None:
    kept = {
        line[1:]
        for line in (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
        if line[0] == "!"
    }
    copied = {
        name for text in instructions("COPY") for name in text.split()[:-1] if not text.startswith("--from")
    }
    assert copied == kept


def test_the_page_about_containers_names_files_and_services_that_exist() -> None:
    page = (ROOT / "docs" / "how-to" / "containers.md").read_text()
    assert {path for path in re.findall(r"-f (\S+)", page) if not (ROOT / path).exists()} == set()
    named = {name for line in re.findall(r" up -d ([a-z0-9 -]+)", page) for name in line.split()}
    assert named == set(BROKERS)


def test_the_single_broker_of_compose_serves_and_is_healthy(image: Image, tmp_path: Path) -> None:
    with container(image, "broker", tmp_path / "data") as variables:
        check_health(image, variables)
        run("penstock topics create orders --partitions 2", tmp_path, variables)
        run("echo hello | penstock produce orders", tmp_path, variables)
        assert "hello" in run("penstock consume orders --from-beginning -n 1", tmp_path, variables)
    assert (tmp_path / "data" / "orders-0").is_dir()


def test_the_three_brokers_of_compose_are_one_cluster(image: Image, tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper, ExitStack() as running:
        for name in BROKERS[1:]:
            variables = running.enter_context(container(image, name, tmp_path / name, zookeeper.address))
            check_health(image, variables)
        run("penstock topics create orders", tmp_path, variables)
        run("penstock status", tmp_path, variables)
        described = json.loads(run("penstock topics describe orders -o json", tmp_path, variables))
        assert sorted(re.findall(r"\d", json.dumps(described[0]["partitions"][0]["replicas"]))) == [
            "1",
            "2",
            "3",
        ]
