"""Servers for tests: PostgreSQL, MariaDB and Redis, each on a free port of the loopback address, with its files in a directory of
its own. Where tests run as root, PostgreSQL, which refuses that, runs as the user `postgres` that Debian's package makes.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from penstock.testing.processes import RunningProcess, free_port, start_process
from tests.connect.workers import until

_PATH = ":".join(
    [os.environ["PATH"], "/usr/sbin", "/sbin", *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin")))]
)


def program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    assert found is not None, f"{name} is missing: run scripts/tests-setup"
    return found


class Server:
    """Use as a context. `stop` and `start` again on the same port with the same data."""

    name = ""
    process: RunningProcess

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.port = directory, free_port()

    def command(self) -> Sequence[str | Path]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        self.process = start_process(self.command(), name=self.name, log_path=self.directory / "server.log")
        self.process.wait_for_port(self.port)
        until(self.is_ready, f"{self.name} ready")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()


def answers(call: Callable[[], Any]) -> bool:
    try:
        call()
    except Exception:
        return False
    return True


class PostgreSql(Server):
    name = "PostgreSQL"
    password = "a-password"

    def __init__(self) -> None:
        # Not below pytest's directory, which only its owner enters.
        self._place = tempfile.mkdtemp(prefix="penstock-postgresql-")
        self._user: list[str] = []
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self._place, owner.pw_uid, owner.pw_gid)
            self._user = [program("runuser"), "-u", "postgres", "--"]
        super().__init__(Path(self._place))
        words = self.directory / "password"
        words.write_text(self.password)
        words.chmod(0o644)
        subprocess.run(
            [*self._user, program("initdb"), "-D", self.directory / "data", "-U", "penstock", "--auth=scram-sha-256",
             f"--pwfile={words}", "--no-sync", "--encoding=UTF8", "--no-locale"],
            check=True, capture_output=True, timeout=120, cwd="/",
        )  # fmt: skip

    def command(self) -> Sequence[str | Path]:
        options = {
            "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "wal_level": "logical",
            "max_connections": "50", "shared_buffers": "64MB",
        }  # fmt: skip
        given = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [*self._user, program("postgres"), "-D", self.directory / "data", "-p", str(self.port), *given]

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    @property
    def login(self) -> dict[str, str]:
        return {
            "connection.url": self.jdbc_url,
            "connection.user": "penstock",
            "connection.password": self.password,
        }

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="penstock", password=self.password, dbname="postgres",
            autocommit=True, connect_timeout=10,
        )  # fmt: skip

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            cursor = connection.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def is_ready(self) -> bool:
        return answers(lambda: self.run("SELECT 1"))

    @property
    def _pid(self) -> int:
        """Of the server itself: runuser may be in front of it, and passes no SIGKILL on."""
        return int((self.directory / "data" / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """At once, with all of its processes."""
        server = self._pid
        processes = [server, *_children_of(server)]
        for each in processes:
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(timeout_s=30)
        until(lambda: not any(map(_runs, processes)), "its end")

    def __exit__(self, *_: object) -> None:
        if self.process.is_running:
            # In order: a server that is killed leaves its shared memory behind.
            os.kill(self._pid, signal.SIGINT)
            self.process.wait(timeout_s=30)
        shutil.rmtree(self._place, ignore_errors=True)


def _children_of(pid: int) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = place.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == pid:
            found.append(int(place.parent.name))
    return found


def _runs(pid: int) -> bool:
    """And is not only waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class MariaDb(Server):
    name = "MariaDB"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        subprocess.run(
            [program("mariadb-install-db"), "--no-defaults", f"--datadir={directory / 'data'}", "--skip-test-db",
             "--auth-root-authentication-method=normal", *self._as_root()],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip

    def _as_root(self) -> list[str]:
        return ["--user=root"] if os.getuid() == 0 else []

    def command(self) -> Sequence[str | Path]:
        return [
            program("mariadbd"), "--no-defaults", f"--datadir={self.directory / 'data'}", f"--port={self.port}",
            "--bind-address=127.0.0.1", f"--socket={self.directory / 's'}", "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=64M", "--skip-name-resolve", *self._as_root(),
        ]  # fmt: skip

    @property
    def login(self) -> dict[str, str]:
        return {
            "connection.url": f"jdbc:mariadb://127.0.0.1:{self.port}/penstock",
            "connection.user": "penstock",
            "connection.password": "word",
        }

    def run(
        self, statement: str, *, user: str = "penstock", password: str = "word", database: str = "penstock"
    ) -> Any:
        import pymysql

        connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user=user, password=password, database=database or None, autocommit=True,
            connect_timeout=10, charset="utf8mb4",
        )  # fmt: skip
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def is_ready(self) -> bool:
        return answers(lambda: self.run("SELECT 1", user="root", password="", database=""))

    def start(self) -> None:
        super().start()
        for statement in (
            "CREATE DATABASE IF NOT EXISTS penstock CHARACTER SET utf8mb4",
            "CREATE USER IF NOT EXISTS penstock@'127.0.0.1' IDENTIFIED BY 'word'",
            "GRANT ALL ON penstock.* TO penstock@'127.0.0.1'",
        ):
            self.run(statement, user="root", password="", database="")


class Redis(Server):
    name = "Redis"

    def command(self) -> Sequence[str | Path]:
        return [
            program("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory, "--save", "",
            "--appendonly", "no", "--daemonize", "no",
        ]  # fmt: skip

    def client(self) -> Any:
        import redis

        return redis.Redis(port=self.port, decode_responses=True, socket_timeout=10)

    def is_ready(self) -> bool:
        with self.client() as client:
            return answers(client.ping)
