"""Programs that run plans: Kafka Streams in Java and ours on Spark, which take the same words (clients/stream_plans.py)."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.context import ROOT, Context
from bench.servers import KAFKA_STREAMS
from penstock.testing.processes import ProcessFailed
from simulation.apache.java import QUIET_TOOL, java_command

SOURCE = ROOT / "bench" / "java" / "StreamsPlans.java"
THREADS = 2
READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
NO_TABLE = "-"


class StreamsProgram:
    def __init__(self, command: list[str], log_path: Path) -> None:
        self._log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT
            )
        self.pid = self._process.pid
        self._words: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._hear, name="bench-streams", daemon=True).start()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._words.put(line.strip())
        self._words.put("")  # it has ended

    def wait_for(self, word: str) -> None:
        while True:
            try:
                heard = self._words.get(timeout=READY_TIMEOUT_S)
            except queue.Empty:
                raise self.failure(f"did not say {word} within {READY_TIMEOUT_S:g} s") from None
            if heard == word:
                return
            if not heard:
                raise self.failure(f"ended before it said {word}")

    def failure(self, complaint: str) -> ProcessFailed:
        return ProcessFailed(f"streams: {complaint}\n{self._log_path.read_text(errors='replace')[-3000:]}")

    @contextmanager
    def plan(
        self, kind: str, application: str, source: str, target: str, *, table: str = NO_TABLE, guarantee: str
    ) -> Iterator[None]:
        self._tell(f"start {kind} {application} {source} {table} {target} {guarantee}")
        self.wait_for("running")
        yield
        self._tell("stop")
        self.wait_for("stopped")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self.failure(str(error)) from None

    def close(self) -> None:
        """It ends with its standard input, or is killed."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(STOP_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def program_command(side: str, bootstrap: str, directory: Path) -> list[str]:
    if side == KAFKA_STREAMS:
        # A source file in the place of a class: Java compiles it, in memory, and runs it.
        return java_command(
            str(SOURCE), bootstrap, str(directory / "state"), str(THREADS), jvm_options=QUIET_TOOL
        )
    options = json.dumps({"bootstrap": bootstrap, "tasks": THREADS})
    return [sys.executable, "-m", "bench.clients.stream_plans", options]


@contextmanager
def running_program(context: Context) -> Iterator[StreamsProgram]:
    with context.fresh_directory() as directory:
        command = program_command(context.kind.name, context.server().bootstrap, directory)
        program = StreamsProgram(command, directory / "streams.log")
        try:
            program.wait_for("ready")
            yield program
        finally:
            program.close()
