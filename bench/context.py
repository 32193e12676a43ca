"""One server's part of one round: a directory, a server that is started when first needed, and clean-up."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from bench.measure import Scale
from bench.servers import Server, ServerKind
from bench.topics import create_topic, temporary_topic
from penstock.testing.processes import ProcessFailed

ROOT = Path(__file__).resolve().parents[1]
WARM_UP_RECORDS = 200_000


class Context:
    def __init__(
        self, kind: ServerKind, directory: Path, scale: Scale, *, host: "Context | None" = None
    ) -> None:
        self.kind = kind
        self.scale = scale
        self.host = host  # whose server this one uses
        self.round_number = 0
        self._directory = directory
        self._server: Server | None = None
        self._kept_topics: set[str] = set()

    def server(self) -> Server:
        """What the workloads of a round share, warmed up: a JVM is not judged by its first second."""
        if self.host is not None:
            return self.host.server()
        if self._server is None:
            directory = self._directory / "shared"
            directory.mkdir(parents=True)
            self._server = self.kind.start(directory)
            if self.kind.keeps_records:
                self._warm_up()
        return self._server

    def _warm_up(self) -> None:
        with self.topic("warm-up", partition_count=6) as topic:
            self.client(
                "produce", topic=topic, record_count=WARM_UP_RECORDS, record_bytes=100, compression="none"
            )
            self.client("consume", topic=topic, record_count=WARM_UP_RECORDS, group="warm-up")

    @contextmanager
    def fresh_directory(self) -> Iterator[Path]:
        directory = self._directory / "own"
        directory.mkdir(parents=True)
        try:
            yield directory
        finally:
            shutil.rmtree(directory)

    def topic(self, name: str, *, partition_count: int) -> AbstractContextManager[str]:
        topic = f"{name}-r{self.round_number}-{partition_count}p"
        server = self.server()
        if not self.kind.keeps_records:
            return nullcontext(topic)
        return temporary_topic(server, topic, partition_count=partition_count)

    def kept_topic(self, name: str, *, partition_count: int, filler: str, **options: Any) -> str:
        """A topic that the client `filler` fills once, for all that share this server, and that goes with the server."""
        if self.host is not None:
            return self.host.kept_topic(name, partition_count=partition_count, filler=filler, **options)
        topic = f"{name}-{partition_count}p"
        if topic not in self._kept_topics:
            create_topic(self.server(), topic, partition_count=partition_count)
            self.client(filler, topic=topic, partition_count=partition_count, **options)
            self._kept_topics.add(topic)
        return topic

    def client(
        self, name: str, *, server: Server | None = None, timeout_s: float = 180, **options: Any
    ) -> Any:
        """Runs bench/clients/NAME.py in a process of its own; its last line is its result."""
        with self.background_client(name, server=server, timeout_s=timeout_s, **options) as client:
            return client.result()

    @contextmanager
    def background_client(
        self, name: str, *, server: Server | None = None, timeout_s: float = 180, **options: Any
    ) -> Iterator["BackgroundClient"]:
        """The same beside other work; it is killed where the block ends before it."""
        options["bootstrap"] = (server or self.server()).bootstrap
        command = [sys.executable, "-m", f"bench.clients.{name}", json.dumps(options)]
        client = BackgroundClient(name, command, timeout_s=timeout_s)
        try:
            yield client
        finally:
            client.close()

    @staticmethod
    def settle() -> None:
        """Writes back what earlier runs left dirty, so that nobody pays for another's records."""
        os.sync()

    def close(self) -> None:
        try:
            if self._server is not None:
                self._server.stop()
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)


class BackgroundClient:
    def __init__(self, name: str, command: Sequence[str], *, timeout_s: float) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def said(self) -> Any:
        """What the client says on its next line, before its result."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else self.result()

    def result(self) -> Any:
        """Its last line, once it has ended. Its standard input is closed, for clients that wait for that."""
        try:
            said, complaint = self._process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            raise ProcessFailed(
                f"client {self._name} was still running after {self._timeout_s:g} s"
            ) from None
        if self._process.returncode != 0:
            raise ProcessFailed(
                f"client {self._name} ended with {self._process.returncode}:\n{complaint[-3000:]}"
            )
        return json.loads(said.splitlines()[-1])

    def close(self) -> None:
        with self._process:
            self._process.kill()
