"""A ZooKeeper server that we start: its files, its command line, and its status.

The server comes with PySpark, whose jars hold all of it; nothing here imports PySpark or starts a process.
A cluster in a box and the tests write a configuration, run the command and ask `server_status` until it serves.
"""

import importlib.util
import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# Of Spark's four hundred jars: the server and what it loads. All of them would cost a second at start.
JAR_PREFIXES = (
    "zookeeper-", "slf4j-api-", "log4j-api-", "log4j-core-", "log4j-slf4j2-impl-", "metrics-core-", "netty-",
    "snappy-java-", "audience-annotations-", "commons-cli-", "commons-io-",
)  # fmt: skip
# Sessions expire on a multiple of the tick, so a short tick finds a dead broker sooner; limits count in ticks.
TICK_TIME_MS = 250
JOIN_LIMIT_MS = 10_000
SYNC_LIMIT_MS = 5_000
MIN_SESSION_TIMEOUT_MS = 1_000
MAX_SESSION_TIMEOUT_MS = 60_000
HEAP = "-Xmx128m"
STATUS_TIMEOUT_S = 5.0
MAX_STATUS_BYTES = 65_536


class ServerMissing(Exception):
    """There is no ZooKeeper server, or no Java to run it with; the text is one line that says what to install."""


class Member(NamedTuple):
    """One server of an ensemble; its id is its place in the list, from 1."""

    host: str
    client_port: int
    quorum_port: int
    election_port: int


class ServerStatus(NamedTuple):
    version: str
    mode: str
    """`standalone`, `leader` or `follower`."""
    connections: int
    nodes: int
    zxid: int | None
    """The last change that it knows, if it says so."""


def find_jars() -> list[Path]:
    """The jars of the server, from SPARK_HOME or the installed pyspark package."""
    home = os.environ.get("SPARK_HOME")
    if home is None:
        package = importlib.util.find_spec("pyspark")
        locations = package.submodule_search_locations if package is not None else None
        if not locations:
            raise ServerMissing("the ZooKeeper server comes with PySpark: pip install 'penstock[spark]'")
        home = locations[0]
    jars = sorted(path for path in Path(home, "jars").glob("*.jar") if path.name.startswith(JAR_PREFIXES))
    if not any(path.name.startswith("zookeeper-") for path in jars):
        raise ServerMissing(
            f"no ZooKeeper server in {home}/jars: pip install 'penstock[spark]', or set SPARK_HOME to a Spark that has one"
        )
    return jars


def find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java" if home is None else os.path.join(home, "bin", "java"))
    if java is None:
        where = "JAVA_HOME" if home is not None else "the PATH"
        raise ServerMissing(f"ZooKeeper needs a Java runtime, 17 or later, and there is none in {where}")
    return java


def write_configuration(
    directory: Path,
    *,
    port: int,
    host: str = "127.0.0.1",
    server_id: int = 1,
    members: Sequence[Member] = (),
    tick_time_ms: int = TICK_TIME_MS,
    more: Sequence[str] = (),
) -> Path:
    """Writes `zoo.cfg` (and `myid`, for one of several `members`) in `directory`, which keeps the data too. `more` are
    lines for it."""
    data = directory / "data"
    data.mkdir(parents=True, exist_ok=True)
    lines = [
        f"dataDir={data.resolve()}",
        f"clientPort={port}",
        f"clientPortAddress={host}",
        f"tickTime={tick_time_ms}",
        f"initLimit={JOIN_LIMIT_MS // tick_time_ms}",
        f"syncLimit={SYNC_LIMIT_MS // tick_time_ms}",
        f"minSessionTimeout={MIN_SESSION_TIMEOUT_MS}",
        f"maxSessionTimeout={MAX_SESSION_TIMEOUT_MS}",
        "maxClientCnxns=0",
        "admin.enableServer=false",
        "4lw.commands.whitelist=srvr,ruok",
        "autopurge.snapRetainCount=3",
        "autopurge.purgeInterval=1",
        *more,
    ]
    if len(members) > 1:
        for number, member in enumerate(members, start=1):
            lines.append(f"server.{number}={member.host}:{member.quorum_port}:{member.election_port}")
        (data / "myid").write_text(f"{server_id}\n")
    path = directory / "zoo.cfg"
    path.write_text("\n".join(lines) + "\n")
    return path


def server_command(configuration: Path, *, heap: str = HEAP, properties: Sequence[str] = ()) -> list[str]:
    """The command that runs the server in the foreground; `properties` are more of the form `-Dname=value`."""
    return [
        find_java(),
        heap,
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dlog4j2.level=warn",
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dzookeeper.preAllocSize=4096",  # KiB of log made at a time; 64 MiB is for busier ensembles
        *properties,
        "-cp",
        os.pathsep.join(str(jar) for jar in find_jars()),
        MAIN_CLASS,
        str(configuration),
    ]


def server_status(host: str, port: int, *, timeout_s: float = STATUS_TIMEOUT_S) -> ServerStatus | None:
    """What the server says to `srvr`; None when none answers there, or it does not serve (yet, or without a quorum)."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(b"srvr")
            answer = b""
            while len(answer) < MAX_STATUS_BYTES and (part := connection.recv(8192)):
                answer += part
    except OSError:
        return None
    fields = dict(line.partition(": ")[::2] for line in answer.decode(errors="replace").splitlines())
    if "Mode" not in fields:
        return None
    return ServerStatus(
        version=fields.get("Zookeeper version", "").partition("-")[0],
        mode=fields["Mode"],
        connections=int(fields.get("Connections", "0")),
        nodes=int(fields.get("Node count", "0")),
        zxid=int(fields["Zxid"], 16) if "Zxid" in fields else None,
    )
