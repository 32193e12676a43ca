"""Spark's standalone cluster and its Connect server, as processes of their own, from the pip package of PySpark."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.testing.processes import RunningProcess, free_port, start_process

HOST = "127.0.0.1"
READY_TIMEOUT_S = 120.0
SMALL_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss512k",
}
CONNECT_SERVER = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
# Given to a worker, they would reach its executors, where the driver's word should count.
DRIVERS_OWN = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_REMOTE")


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).resolve().parent


class _Processes:
    """Started one after the other, stopped in the opposite order; their working directory goes with them."""

    def __init__(self, name: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        self._running: list[RunningProcess] = []

    def start(
        self, command: Sequence[str | Path], *, name: str, environment: Mapping[str, str]
    ) -> RunningProcess:
        # `env -u`: start_process adds to the environment of this process and takes nothing away.
        unwanted = [each for each in DRIVERS_OWN if each in os.environ and each not in environment]
        without = [word for variable in unwanted for word in ("-u", variable)]
        process = start_process(
            ["env", *without, *command],
            name=name,
            log_path=self.directory / f"{name}.log",
            environment={"SPARK_LOCAL_IP": HOST, "SPARK_NO_DAEMONIZE": "1", **environment},
            working_directory=self.directory,
        )
        self._running.append(process)
        return process

    def stop(self) -> None:
        while self._running:
            self._running.pop().stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class SparkCluster(_Processes):
    """A master and its workers on loopback ports. All have registered when the constructor returns."""

    def __init__(
        self,
        *,
        workers: int = 1,
        cores: int = 2,
        memory: str = "1g",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__("spark-cluster")
        self.port = free_port()
        self._environment = {**SMALL_DAEMON, **(environment or {})}
        try:
            master = self._start_class(
                "master.Master", "master", "--port", str(self.port), "--webui-port", str(free_port())
            )
            master.wait_for_line("I have been elected leader", timeout_s=READY_TIMEOUT_S)
            self.workers = [self._start_worker(number, cores, memory) for number in range(workers)]
            for worker in self.workers:
                worker.wait_for_line("Successfully registered with master", timeout_s=READY_TIMEOUT_S)
        except BaseException:
            self.stop()
            raise

    @property
    def master(self) -> str:
        """For `penstock.spark.session(master=…)`."""
        return f"spark://{HOST}:{self.port}"

    @property
    def work_directory(self) -> Path:
        """What executors wrote: app-…/0/stderr."""
        return self.directory / "work"

    def _start_worker(self, number: int, cores: int, memory: str) -> RunningProcess:
        options = ("--cores", str(cores), "--memory", memory, "--work-dir", str(self.work_directory))
        web = ("--webui-port", str(free_port()))
        return self._start_class("worker.Worker", f"worker-{number}", *options, *web, self.master)

    def _start_class(self, name: str, log_name: str, *arguments: str) -> RunningProcess:
        home = spark_home()
        return self.start(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--host", HOST, *arguments],
            name=log_name,
            environment={"SPARK_HOME": str(home), **self._environment},
        )


class SparkConnectServer(_Processes):
    """Spark's Connect server with a local Spark in it; Python workers are this Python."""

    def __init__(self, python: str, *, cores: int = 2, settings: Mapping[str, str] | None = None) -> None:
        super().__init__("spark-connect")
        self.port = free_port()
        home = spark_home()
        named = {
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.connect.grpc.binding.address": HOST,
            "spark.ui.enabled": "false",
            "spark.driver.memory": "700m",
            "spark.driver.extraJavaOptions": SMALL_DAEMON["SPARK_DAEMON_JAVA_OPTS"],
            **(settings or {}),
        }
        options = [word for name, value in named.items() for word in ("--conf", f"{name}={value}")]
        try:
            server = self.start(
                [home / "bin" / "spark-submit", "--master", f"local[{cores}]", *options, *CONNECT_SERVER],
                name="connect",
                environment={"SPARK_HOME": str(home), "PYSPARK_PYTHON": python},
            )
            server.wait_for_line("Spark Connect server started at", timeout_s=READY_TIMEOUT_S)
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """For `penstock.spark.session(master=…)`."""
        return f"sc://{HOST}:{self.port}"
