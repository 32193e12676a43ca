"""The rows of a Spark master and its workers, which are started only when they are asked for: `penstock up --with spark`.

They are for programs of your own, at the master `spark://127.0.0.1:7077`. The SQL server and Connect have a local Spark each; a
setting (`penstock.sql.master`, `penstock.connect.master`) brings them here, too. A master asks nobody who they are, so a secured
stack has none.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
from pathlib import Path

from penstock.client.errors import UserError
from penstock.model.endpoints import bracketed
from penstock.stack.health import ASK_TIMEOUT_S, NO_ANSWER, http_health
from penstock.stack.http_settings import check_settings, settings_of
from penstock.stack.stack import Member, Service, Stack
from penstock.stores.zookeeper_server import ServerMissing, find_java

NAME = "spark"
WORKER_NAME = "spark-worker"
PORT = 7077
WORKER_PORT = 7078
MAX_WORKERS = 16
CORES, MEMORY = "cores", "memory"
DEFAULTS = {CORES: "2", MEMORY: "1g"}
SMALL_DAEMON = (
    "SPARK_DAEMON_MEMORY=256m",
    "SPARK_DAEMON_JAVA_OPTS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss512k",
)
DRIVERS_OWN = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_REMOTE")
"""Given to a worker, they would reach its executors, where the driver's word should count."""
REST_PROPERTIES = "spark.master.rest.enabled=false\n"


def _home() -> str:
    home = os.environ.get("SPARK_HOME")
    if home is not None:
        return home
    package = importlib.util.find_spec("pyspark")
    locations = package.submodule_search_locations if package is not None else None
    if not locations:
        raise UserError("Spark comes with PySpark: pip install 'penstock[spark]', or set SPARK_HOME")
    return str(locations[0])


def _start(stack: Stack, member: Member, name: str, *words: str) -> list[str]:
    """Its folder is in the word of --properties-file."""
    if stack.is_secure:
        raise UserError(
            "a Spark master asks nobody who they are, so it is no part of a secured stack: leave out spark"
        )
    try:
        find_java()
    except ServerMissing as error:
        raise UserError(str(error)) from None
    home, host = _home(), stack.host_of(member)
    properties = stack.data_of(member) / "spark.conf"
    properties.write_text(REST_PROPERTIES)
    without = [word for variable in DRIVERS_OWN for word in ("-u", variable)]
    environment = [f"SPARK_HOME={home}", f"SPARK_LOCAL_IP={host}", *SMALL_DAEMON]
    java_class = f"org.apache.spark.deploy.{name}"
    return [
        "env", *without, *environment, str(Path(home) / "bin" / "spark-class"), java_class,
        "--host", host, "--properties-file", str(properties), *words,
    ]  # fmt: skip


def master_url(stack: Stack) -> str | None:
    """None: the stack has none."""
    members = stack.members_of(NAME)
    if not members:
        return None
    host, port = stack.address_of(members[0])
    return f"spark://{bracketed(host)}:{port}"


def _master(stack: Stack, member: Member) -> list[str]:
    return _start(stack, member, "master.Master", "--port", str(member.port), "--webui-port", "0")


def _worker(stack: Stack, member: Member) -> list[str]:
    """Its port is that of its page, where it is asked whether it is well."""
    has = DEFAULTS | settings_of(stack, WORKER_NAME)
    size = ("--cores", has[CORES], "--memory", has[MEMORY])
    folder = ("--work-dir", str(stack.data_of(member) / "work"))
    page = ("--webui-port", str(member.port))
    return _start(stack, member, "worker.Worker", *size, *folder, *page, master_url(stack) or "")


def _master_health(stack: Stack, member: Member) -> str | None:
    """Whether it listens: its own protocol is Java's."""
    try:
        socket.create_connection(stack.address_of(member), timeout=ASK_TIMEOUT_S).close()
    except OSError:
        return NO_ANSWER
    return None


def _setting_problem(name: str, value: str) -> str | None:
    if name not in DEFAULTS:
        return f"there is no setting {name} of Spark's workers: there are {' and '.join(DEFAULTS)}"
    if name == CORES and not re.fullmatch(r"[1-9]\d{0,4}", value):
        return f"cores are a number from 1 on, not '{value}'"
    if name == MEMORY and not re.fullmatch(r"[1-9]\d*[kmgt]", value):
        return f"memory is a size such as 512m or 2g, not '{value}'"
    return None


MASTER = Service(
    name=NAME,
    title="the Spark master",
    plural="Spark masters",
    command=_master,
    health_check=_master_health,
    port=PORT,
    port_option="--spark-port",
    default_count=0,
    brings=(WORKER_NAME,),
    own_files=r"spark\.conf",
    is_in_all=False,
)
WORKER = Service(
    name=WORKER_NAME,
    title="Spark's workers",
    plural="Spark workers",
    command=_worker,
    health_check=http_health("/json/"),
    port=WORKER_PORT,
    port_option="--spark-worker-port",
    needs=(NAME,),
    counts=range(MAX_WORKERS + 1),
    count_option="--spark-workers",
    is_numbered=True,
    can_grow=True,
    default_count=0,
    check_settings=check_settings(WORKER_NAME),
    setting_problem=_setting_problem,
    setting_docs=lambda: {
        CORES: "How many tasks at a time.",
        MEMORY: "The memory of its executors, such as 2g.",
    },
    own_files=r"spark\.conf|work/.*",
    is_in_all=False,
)
