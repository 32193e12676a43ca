"""Apache Kafka's tools in one JVM that stays, instead of one for each call: a tool then costs little more than its work.

py4j, which comes with PySpark, carries the calls. A tool's `main` is called with its arguments as `java` would call it:
what it prints is collected, what it reads is given, and where it would end the JVM it ends itself.
"""

import atexit
import logging
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import py4j.java_gateway
import py4j.protocol
import pyspark
from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from penstock.testing.processes import ProcessFailed
from simulation.apache.java import DEFAULT_VERSION, QUIET_TOOL, TOOL_HEAP, checked, java_command

EXIT = "org.apache.kafka.common.utils.Exit"
STOP_TIMEOUT_S = 10.0
logging.getLogger("py4j.java_gateway").setLevel(logging.CRITICAL)  # an exception is how each tool ends


def resident_tool(
    main_class: str,
    *args: str,
    stdin: str | None = None,
    timeout_s: float = 120.0,
    version: str = DEFAULT_VERSION,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """As `java.java_tool`, in the JVM that is there for tools of this version; the first call starts it.

    One call at a time. What a tool leaves in static variables is there for the next one: Kafka's tools leave nothing.
    """
    jvm = _residents.get(version)
    if jvm is None:
        jvm = _residents[version] = _ToolsJvm(version)
    late = threading.Timer(timeout_s, jvm.kill)
    late.start()
    try:
        done = jvm.run(main_class, args, "" if stdin is None else stdin)
    except Py4JError as error:
        _residents.pop(version).close()
        if not late.is_alive():
            raise ProcessFailed(f"{main_class} was still running after {timeout_s:g} s") from None
        raise ProcessFailed(f"{main_class}: the JVM of the tools is gone: {error}") from error
    finally:
        late.cancel()
    return checked(main_class, done) if check else done


class _Ended(Exception):
    """Goes through the tool's main in Java, so that it does not go on."""


class _Exits:
    """In the place of the end of the JVM (Kafka's `Exit.Procedure`): the first exit counts, as nothing follows a real one."""

    class Java:
        implements = (f"{EXIT}$Procedure",)

    def __init__(self, jvm: "_ToolsJvm") -> None:
        self._jvm = jvm
        self.first: tuple[int, tuple[int, ...]] | None = None

    def execute(self, code: int, message: str | None) -> None:
        if self.first is None:
            self.first = (code, self._jvm.sizes())
        raise _Ended


class _Hooks:
    """What a tool wants done when the JVM ends (Kafka's `Exit.ShutdownHookAdder`): it is done when the tool has ended."""

    class Java:
        implements = (f"{EXIT}$ShutdownHookAdder",)

    def __init__(self) -> None:
        self._added: list[Any] = []

    def addShutdownHook(self, name: str | None, runnable: Any) -> None:
        self._added.append(runnable)

    def run(self) -> None:
        while self._added:
            self._added.pop(0).run()


@contextmanager
def _plain_errors() -> Iterator[None]:
    """PySpark, once it is in the process, makes errors of its own JVM of all that py4j brings, and asks that JVM for them."""
    installed = py4j.java_gateway.get_return_value
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value
    try:
        yield
    finally:
        py4j.java_gateway.get_return_value = installed


class _ToolsJvm:
    def __init__(self, version: str) -> None:
        jar = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
        command = java_command(
            "py4j.GatewayServer",
            *("--die-on-broken-pipe", "--enable-auth", "0"),
            version=version,
            jvm_options=(*TOOL_HEAP, *QUIET_TOOL),
            quick=True,
            more_jars=[jar],
        )
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        port, token = int(self._process.stdout.readline()), self._process.stdout.readline().strip()
        self._gateway = JavaGateway(
            # Nothing is given back to the collector: a call leaves a few small objects.
            gateway_parameters=GatewayParameters(port=port, auth_token=token, enable_memory_management=False),
            callback_server_parameters=CallbackServerParameters(
                port=0, daemonize=True, daemonize_connections=True
            ),
        )
        server, callbacks = self._gateway.java_gateway_server, self._gateway.get_callback_server()
        server.resetCallbackClient(server.getCallbackClient().getAddress(), callbacks.get_listening_port())
        java = self._java = self._gateway.jvm
        # For good, and before any tool is loaded: Scala's println keeps what it finds first.
        out, err = self._said = java.java.io.ByteArrayOutputStream(), java.java.io.ByteArrayOutputStream()
        java.System.setOut(java.java.io.PrintStream(out, True, "UTF-8"))
        java.System.setErr(java.java.io.PrintStream(err, True, "UTF-8"))
        self._exits = _Exits(self)
        exit_class = self._class(EXIT)
        exit_class.setExitProcedure(self._exits)
        exit_class.setHaltProcedure(self._exits)
        self._hooks = _Hooks()
        exit_class.setShutdownHookAdder(self._hooks)

    def _class(self, name: str) -> Any:
        return reduce(getattr, name.split("."), self._java)

    def run(self, main_class: str, args: tuple[str, ...], stdin: str) -> subprocess.CompletedProcess[str]:
        for each in self._said:
            each.reset()
        self._exits.first = None
        self._java.System.setIn(self._java.java.io.ByteArrayInputStream(stdin.encode()))
        words = self._gateway.new_array(self._java.String, len(args))
        for place, word in enumerate(args):
            words[place] = word
        code = 0
        try:
            with _plain_errors():
                self._class(main_class).main(words)
        except Py4JJavaError as error:
            if self._exits.first is None:  # what `java` does with an exception that main does not catch
                code = 1
                error.java_exception.printStackTrace(self._java.System.err)
        ended = self.sizes()
        code, exited = self._exits.first or (code, ended)
        self._hooks.run()
        # What it said after its exit, on the way out of main, is not there when the JVM ends.
        out, err = (
            (said[:until] + said[since:]).decode()
            for said, until, since in zip(
                (each.toByteArray() for each in self._said), exited, ended, strict=True
            )
        )
        return subprocess.CompletedProcess([main_class, *args], code, out, err)

    def sizes(self) -> tuple[int, ...]:
        """Bytes on standard output and standard error so far."""
        return tuple(each.size() for each in self._said)

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._gateway.shutdown_callback_server()
        self._gateway.close()
        with self._process:  # which closes its input: it ends by that
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()


_residents: dict[str, _ToolsJvm] = {}


@atexit.register
def _close_residents() -> None:
    while _residents:
        _residents.popitem()[1].close()
