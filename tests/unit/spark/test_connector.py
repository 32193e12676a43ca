"""The connector's jars: what is collected is what was meant, or it is not used."""

import hashlib
import os
import threading
from pathlib import Path

import pytest

from penstock.spark import connector
from penstock.spark.connector import Jar, collect, connector_directory, connector_jars, main

CONTENT = b"not really a jar"
JAR = Jar("org.example", "small", "1.0", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
# Writes what it is told to where Maven was told to, and a line for each time that it runs.
MAVEN = """#!/bin/sh
echo run >>"$MAVEN_RUNS"
for word in "$@"; do case "$word" in -DoutputDirectory=*) out="${word#*=}" ;; esac; done
mkdir -p "$out"
printf '%s' "$MAVEN_BRINGS" >"$out/small-1.0.jar"
echo "could not reach the repository"
exit "$MAVEN_EXIT"
"""


@pytest.fixture(autouse=True)
def maven_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven that brings the one jar of these tests; the file has a line for each of its runs."""
    script = tmp_path / "bin" / "mvn"
    script.parent.mkdir()
    script.write_text(MAVEN)
    script.chmod(0o700)
    runs = tmp_path / "runs"
    runs.touch()
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("MAVEN_RUNS", str(runs))
    monkeypatch.setenv("MAVEN_BRINGS", CONTENT.decode())
    monkeypatch.setenv("MAVEN_EXIT", "0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(connector, "JARS", (JAR,))
    return runs


def test_jars_are_in_the_users_cache_once_they_are_collected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert connector_jars() == []
    assert main() == 0
    assert connector_jars() == [connector_directory() / "small-1.0.jar"]
    assert connector_directory().parent == tmp_path / "cache" / "penstock"
    assert "real-time tier" in capsys.readouterr().err


def test_a_second_run_finds_the_work_done_and_says_nothing(
    maven_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main()
    capsys.readouterr()
    assert main() == 0
    assert maven_runs.read_text() == "run\n"
    assert capsys.readouterr().err == ""


def test_a_jar_that_is_not_what_it_should_be_is_not_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAVEN_BRINGS", "something else")
    assert main() == 1
    assert "small-1.0.jar is not what it should be" in capsys.readouterr().err
    assert connector_jars() == []
    assert list(connector_directory().parent.iterdir()) == []


def test_what_maven_said_is_shown_when_it_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAVEN_EXIT", "1")
    assert main() == 1
    said = capsys.readouterr().err
    assert "could not reach the repository" in said
    assert "Without them everything runs but the real-time tier" in said


def test_a_jar_that_was_cut_short_is_collected_again() -> None:
    (collect() / "small-1.0.jar").write_bytes(CONTENT[:-1])
    assert connector_jars() == []
    collect()
    assert connector_jars() != []


def test_two_may_collect_at_once() -> None:
    failures: list[BaseException] = []

    def one() -> None:
        try:
            collect()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert connector_jars() != []
    assert [each.name for each in connector_directory().parent.iterdir()] == [connector_directory().name]
