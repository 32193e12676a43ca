"""How a class of Apache Kafka is run: the jars that scripts/java-setup collects, and the JVM's options.

By default a JVM has the flags of the scripts that Apache ships, so that a comparison with it is a comparison with what a
user gets. A *quick* one is for tests, where no figure counts: it compiles little, and takes its classes from an archive
(class_archive.py), so that a broker starts with a third of the CPU time.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from penstock.testing.processes import ProcessFailed

DEFAULT_VERSION = "4.3.1"
# What kafka-run-class.sh, kafka-server-start.sh and the perf and console tools' scripts give by default.
JVM_PERFORMANCE_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
QUICK_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Xlog:disable",  # an archive that does not fit is not used, without a word on standard output
    "-Djava.awt.headless=true",
)
TOOL_HEAP = ("-Xmx512M",)
QUIET_TOOL = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=error",)


class JarsMissing(Exception):
    pass


def libs_directory(version: str = DEFAULT_VERSION) -> Path:
    """Where the jars are; `scripts/java-setup VERSION` puts them there."""
    root = Path(__file__).resolve().parents[2]
    libs = root / ".cache" / f"kafka-{version}" / "libs"
    if not libs.with_name("complete").exists():
        raise JarsMissing(f"the jars of Apache Kafka {version} are missing: run scripts/java-setup {version}")
    return libs


def java_executable() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def archive_path(version: str = DEFAULT_VERSION) -> Path:
    """Where the class archive for this Java and these jars is, or would be."""
    libs = libs_directory(version)
    java = Path(shutil.which(java_executable()) or "java").resolve()
    made = java.stat().st_mtime_ns if java.exists() else 0
    identity = f"{java}:{made}:{libs}:{libs.stat().st_mtime_ns}"
    return libs.with_name(f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa")


def java_command(
    main_class: str,
    *args: str,
    version: str = DEFAULT_VERSION,
    jvm_options: Sequence[str] = TOOL_HEAP,
    quick: bool = False,
    more_jars: Sequence[Path] = (),
) -> list[str]:
    # Further jars come last: an archive fits every class path that begins with its own.
    class_path = os.pathsep.join([f"{libs_directory(version)}/*", *map(str, more_jars)])
    options = [*jvm_options, *(_quick_options(version) if quick else JVM_PERFORMANCE_OPTIONS)]
    return [java_executable(), *options, "-cp", class_path, main_class, *args]


def _quick_options(version: str) -> Sequence[str]:
    archive = archive_path(version)
    return (*QUICK_OPTIONS, f"-XX:SharedArchiveFile={archive}") if archive.exists() else QUICK_OPTIONS


def java_tool(
    main_class: str,
    *args: str,
    stdin: str | None = None,
    timeout_s: float = 120.0,
    version: str = DEFAULT_VERSION,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Runs one of Apache Kafka's tools to its end in a JVM of its own, as its script does.

    With `check`, an exit code other than 0 is a ProcessFailed that shows what the tool said. Past the
    deadline it is killed. Tests, which run many, have `resident_tools.resident_tool`.
    """
    command = java_command(main_class, *args, version=version, jvm_options=(*TOOL_HEAP, *QUIET_TOOL))
    try:
        done = subprocess.run(
            command,
            input="" if stdin is None else stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise ProcessFailed(
            f"{main_class} was still running after {timeout_s:g} s: {late.stdout!r}"
        ) from None
    return checked(main_class, done) if check else done


def checked(main_class: str, done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    if done.returncode != 0:
        raise ProcessFailed(f"{main_class} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done
