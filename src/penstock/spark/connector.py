"""The jars of Spark's own Kafka connector, which pip does not bring and the real-time tier needs.

    python -m penstock.spark.connector

collects them (10 MB) into the user's cache directory, with Maven if it is there, else with what Spark has built in. Each
jar is what its sum says or it is not used. Nothing else here depends on them: without them streams run as micro-batches.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from penstock.spark.archive import cache_directory

COMMAND = "python -m penstock.spark.connector"
GAIN = "the real-time tier, which handles a record in milliseconds"
COLLECT_TIMEOUT_S = 600
LINES_SHOWN = 4  # of a client that failed


class Jar(NamedTuple):
    group: str
    artifact: str
    version: str
    size_bytes: int
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


# What the connector of 4.2.0 needs beyond the jars of PySpark; it runs with PySpark 4.2 and 4.3. The classes of the token
# provider have to be there; delegation tokens themselves were not tried with this pair.
JARS = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        494_879,
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        64_975,
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        9_220_052,
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        156_457,
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
)

# With the exclusion, Maven looks at no other artifact: what they depend on comes with PySpark.
_DEPENDENCY = """<dependency>
<groupId>{0.group}</groupId><artifactId>{0.artifact}</artifactId><version>{0.version}</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
</dependency>"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>penstock</groupId><artifactId>spark-connector-jars</artifactId><version>1</version>
<packaging>pom</packaging>
<dependencies>{}</dependencies>
</project>"""
# In a process of its own, whose output is shown if it fails: Ivy talks a lot.
_IVY_PROGRAM = """
import sys
from pyspark.sql import SparkSession
directory, *jars = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.jars.ivy", directory).getOrCreate()
for jar in jars:
    spark.sql(f"add jar ivy://{jar}?transitive=false")
"""


class NotCollected(Exception):
    """Why the jars are not there. Its text is for the user."""


def connector_directory() -> Path:
    """Where these jars are, or would be. Another set of jars has another name."""
    identity = hashlib.sha256("".join(jar.sha256 for jar in JARS).encode()).hexdigest()[:16]
    return cache_directory() / f"spark-connector-{identity}"


def connector_jars() -> list[Path]:
    """The jars for `spark.jars`; none unless all are there. Their sums were checked when they came, now only their sizes."""
    directory = connector_directory()
    paths = [directory / jar.name for jar in JARS]
    sizes = [path.stat().st_size if path.is_file() else None for path in paths]
    return paths if sizes == [jar.size_bytes for jar in JARS] else []


def collect() -> Path:
    """Makes sure of the jars and says where they are; NotCollected with the reason. Safe to run twice, and at once."""
    directory = connector_directory()
    if connector_jars():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="spark-connector-", dir=directory.parent) as draft:
        found = Path(draft, "found")
        if shutil.which("mvn"):
            _collect_with_maven(Path(draft), found)
        else:
            _collect_with_ivy(Path(draft), found)
        ready = Path(draft, "ready")
        ready.mkdir()
        for jar in JARS:
            _take(jar, found, ready)
        _put_in_place(ready, directory, Path(draft, "old"))
    return directory


def _collect_with_maven(draft: Path, found: Path) -> None:
    pom = draft / "pom.xml"
    pom.write_text(_POM.format("".join(_DEPENDENCY.format(jar) for jar in JARS)))
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={found}"]
    _run("Maven", ["mvn", "-q", "-B", "-f", str(pom), *copy])


def _collect_with_ivy(draft: Path, found: Path) -> None:
    coordinates = [jar.coordinates for jar in JARS]
    _run("Spark", [sys.executable, "-c", _IVY_PROGRAM, str(draft / "ivy"), *coordinates])
    found.mkdir()
    for jar in JARS:
        (draft / "ivy" / "jars" / f"{jar.group}_{jar.name}").rename(found / jar.name)


def _run(name: str, command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COLLECT_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotCollected(f"{name} could not collect them: {error}") from None
    if done.returncode:
        lines = done.stdout.strip().splitlines()
        # Maven names the cause first and then tells at length where to read on.
        said = [line for line in lines if "ERROR" in line][:LINES_SHOWN] or lines[-LINES_SHOWN:]
        raise NotCollected("\n".join([f"{name} could not collect them, it said:", *said]))


def _take(jar: Jar, found: Path, ready: Path) -> None:
    path = found / jar.name
    if not path.is_file():
        raise NotCollected(f"{jar.name} did not come")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != jar.sha256:
        raise NotCollected(f"{jar.name} is not what it should be: its SHA-256 is {digest}, not {jar.sha256}")
    path.rename(ready / jar.name)


def _put_in_place(ready: Path, directory: Path, old: Path) -> None:
    if directory.exists() and not connector_jars():
        directory.rename(old)
    try:
        ready.rename(directory)
    except OSError:
        # Somebody was quicker.
        if not connector_jars():
            raise


def main() -> int:
    were_there = bool(connector_jars())
    try:
        directory = collect()
    except NotCollected as error:
        print(
            f"penstock: the jars of Spark's Kafka connector are not there: {error}\n"
            f"Without them everything runs but {GAIN}. Try again with: {COMMAND}",
            file=sys.stderr,
        )
        return 1
    if not were_there:
        print(
            f"penstock: {len(JARS)} jars of Spark's Kafka connector are in {directory}: {GAIN}",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
