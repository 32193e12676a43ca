"""The README's first command does what it says, and the commands that it prints can be run."""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from examples.demo import topics
from penstock.testing.processes import RunningProcess, port_is_open, start_process

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 300.0


def start_demo(tmp_path: Path, *words: str) -> RunningProcess:
    command = [sys.executable, "-m", "examples.demo", "--measurements", "2000", *words]
    return start_process(
        command,
        name="the demo",
        log_path=tmp_path / "demo.log",
        environment={"TMPDIR": str(tmp_path)},
        working_directory=ROOT,
    )


def run(command: str) -> str:
    done = subprocess.run(
        ["timeout", "-k", "5", "60", "sh", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.timeout(DEADLINE_S + 60)
@pytest.mark.parametrize("words", [(), ("--secure",)], ids=["open", "secured"])
def test_the_demo_computes_a_summary_and_stays_up_for_the_commands_that_it_prints(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with start_demo(tmp_path, "--keep", *words) as demo:
        demo.wait_for_line("stays up until Ctrl-C", timeout_s=DEADLINE_S)
        text = demo.log_text()
        commands = re.findall(r"^  (bin/.*)$", text, re.MULTILINE)
        answers = {command.split()[0] + " " + command.split()[1]: run(command) for command in commands}
        console = re.search(r"The console: (https?://\S+)", text)
        assert console is not None, text
        assert_it_answers(console[1])
        code = demo.stop()
    assert code == 0
    assert ("with TLS and a login" in text) == bool(words)
    assert "72 rows, each once, and the same as plain Python computes" in text
    assert "Traceback" not in text
    assert "WARN" not in text
    assert "|FAIL|" not in text
    refused = re.search(r"(\d+) refused, with the cause \(MissingField \d+ · NotJson", text)
    assert refused is not None, text
    _check_answers(answers)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("penstock-demo-")] == []


def assert_it_answers(url: str) -> None:
    """A browser would ask about the certificate, which is of the stack's own authority."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    asked = urllib.request.Request(url, headers={"Accept": "text/html"})
    with urllib.request.urlopen(asked, context=context, timeout=30) as page:
        assert "text/html" in page.headers["Content-Type"]


def _check_answers(answers: dict[str, str]) -> None:
    assert "bioimpedancia.resumo" in answers["bin/penstock topics"]
    assert answers["bin/kafka-console-consumer.sh --bootstrap-server"].count('"fat_free_mass_kg":') == 5
    groups = answers["bin/kafka-consumer-groups.sh --bootstrap-server"].splitlines()
    lags = [line.split()[5] for line in groups if line.startswith("bioimpedancia-resumo ")]
    assert lags == ["0"] * topics.TOPICS[topics.MEASUREMENTS][0], groups
    assert "bioimpedancia.metrica" in answers["bin/penstock groups"]
    assert "lote-13 with" in answers["bin/penstock consume"]
    assert re.search(r"NotJson|MissingField|OutOfRange|UnknownWorker", answers["bin/penstock dlq"])
    (ksql,) = (answer for words, answer in answers.items() if words.startswith("bin/ksql "))
    assert "METRICAS" in ksql
    assert "TRABALHADORES" in ksql
    assert re.search(r"^console +healthy", answers["bin/penstock status"], re.MULTILINE)
    assert "fat_percent" in answers["bin/penstock sql"]  # of the last one, which reads the table


def test_ctrl_c_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    with start_demo(tmp_path) as demo:
        address = demo.wait_for_line(r"a broker listens on ([\d.]+):(\d+)")
        demo.wait_for_line("topics: ")
        os.kill(demo.pid, signal.SIGINT)
        assert demo.wait(timeout_s=60) == 130
    assert "stopped" in demo.log_text()
    assert "Traceback" not in demo.log_text()
    assert not port_is_open(address[1], int(address[2]))
    # Ours; pyspark may leave the directory of a JVM that was just being started.
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("penstock-")] == []
