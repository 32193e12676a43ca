"""The stack of examples/lab: started for the demo on free ports, as `penstock up --file` does, and removed after it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from examples.demo.way import Way
from penstock.stack import brokers, secured
from penstock.stack.removal import Removal
from penstock.stack.services import SERVICES
from penstock.stack.stack import Stack
from penstock.stack.stack_file import locked_stack, read_stack
from penstock.stack.starting import running
from penstock.stack.stopping import bring_down

FILE = Path(__file__).resolve().parents[1] / "lab" / "penstock.yaml"
SHOWN = ("registry", "rest", "connect", "sql", "console")
UP_TIMEOUT_S = 180.0
WATCH_PAUSE_S = 0.5
SPARE_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class NotUp(Exception):
    """The stack does not run; `up.log` and the logs of the services tell why."""


class Lab:
    """`port`: of the broker; the others take free ones, and so does it without one."""

    def __init__(self, directory: Path, *, port: int | None, is_secure: bool) -> None:
        self.directory = directory / "stack"
        self._log = directory / "up.log"
        ports = [word for service in SERVICES for word in (service.port_option, "0")]
        ports[ports.index("--port") + 1] = str(port or 0)
        self._words = ["up", "--file", str(FILE), "--data", str(self.directory), *ports]
        self._words += ["--secure"] if is_secure else []

    def __enter__(self) -> Self:
        environment = {**os.environ, "JDK_JAVA_OPTIONS": SPARE_JAVA}
        try:
            with self._log.open("wb") as log:
                done = subprocess.run(
                    [sys.executable, "-m", "penstock", *self._words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    timeout=UP_TIMEOUT_S,
                    check=False,
                )
            if done.returncode != 0:
                raise NotUp(self._log.read_text().strip().splitlines()[-1])
        except BaseException:
            self._stop(remove=False)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Where something failed, what was kept stays: one may want to look at it."""
        self._stop(remove=error is None or isinstance(error, KeyboardInterrupt))

    @property
    def stack(self) -> Stack:
        found = read_stack(self.directory)
        assert found is not None
        return found

    @property
    def way(self) -> Way:
        stack = self.stack
        bootstrap = brokers.bootstrap_of(stack)
        if not stack.is_secure:
            return Way(bootstrap)
        user, password = secured.admin_login(stack)
        return Way(bootstrap, password, secured.authority_file(stack), secured.client_file(stack), user)

    def addresses(self) -> dict[str, str]:
        """Of the services beside the brokers, by name."""
        stack = self.stack
        scheme = "https" if stack.is_secure else "http"
        return {
            name: f"{scheme}://{stack.address_of(member)}"
            for name in SHOWN
            for member in stack.members_of(name)[:1]
        }

    def wait_for_end(self, timeout_s: float) -> None:
        """Until so much time has gone, or no broker runs any more."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s and running(self.stack, self.stack.members_of(brokers.NAME)):
            time.sleep(WATCH_PAUSE_S)

    def _stop(self, *, remove: bool) -> None:
        """An interrupted `up` may have written nothing yet."""
        if read_stack(self.directory) is None:
            return
        with locked_stack(self.directory, patience_s=UP_TIMEOUT_S) as stack:
            bring_down(stack, list(stack.members), tell=_nobody, waiting=_nobody)
            if remove:
                with suppress(OSError):
                    list(Removal(stack).run())


def _nobody(sentence: str) -> None:
    """The demo's screen has no place for it."""
