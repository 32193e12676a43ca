import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker

Run = Callable[..., Any]


@pytest.fixture
def topic(penstock: Run, topic_name: str) -> str:
    created = penstock(
        "topics", "create", topic_name, "--partitions", "2", "--config", "retention.ms=3600000"
    )
    assert created == ("", f"✓ created {topic_name}\n", 0)
    return topic_name


def test_topics_are_listed_as_a_table_and_as_json(penstock: Run, topic: str) -> None:
    table = penstock("topics", "list").out
    assert table.splitlines()[0].split() == ["topic", "partitions", "replicas"]
    assert [topic, "2", "1"] in [line.split() for line in table.splitlines()]
    listed = json.loads(penstock("topics", "list", "-o", "json").out)
    assert {"topic": topic, "partitions": 2, "replication_factor": 1} in listed


def test_a_topic_is_described_with_its_offsets(penstock: Run, topic: str) -> None:
    penstock("produce", topic, "a", "b", "--partition", "1")
    (described,) = json.loads(penstock("topics", "describe", topic, "-o", "json").out)
    assert described["topic"] == topic
    assert described["configs"]["retention.ms"] == "3600000"
    assert [one["end_offset"] for one in described["partitions"]] == [0, 2]
    assert "retention.ms = 3600000" in penstock("topics", "describe", topic).out


def test_a_name_that_is_nearly_right_gets_a_hint(penstock: Run, topic: str) -> None:
    done = penstock("topics", "describe", topic + "x")
    assert done == ("", f"penstock: there is no topic '{topic}x'. Did you mean '{topic}'?\n", 1)


def test_a_topic_is_altered_and_deleted(penstock: Run, topic: str) -> None:
    altered = penstock("topics", "alter", topic, "--partitions", "3", "--config", "retention.ms=1000")
    assert altered.err == f"✓ {topic} has 3 partitions now\n✓ changed retention.ms of {topic}\n"
    assert penstock("topics", "delete", topic, "--yes") == ("", f"✓ deleted {topic}\n", 0)
    assert penstock("topics", "describe", topic).code == 1


def test_what_the_broker_refuses_is_one_line(penstock: Run, topic: str) -> None:
    assert penstock("topics", "create", topic) == ("", f"penstock: Topic '{topic}' already exists.\n", 1)
    assert penstock("topics", "create", topic, "--if-not-exists").code == 0


def test_records_are_produced_and_consumed(penstock: Run, topic: str) -> None:
    placed = penstock("produce", topic, "hello", "-k", "k", "-H", "a=b", "-p", "0", "-o", "json")
    assert json.loads(placed.out) == {"topic": topic, "partition": 0, "offset": 0}
    shown = penstock("consume", topic, "--from-beginning", "--exit", "-f", r"%t %p/%o %k: %v %h%%\n")
    assert shown == (f"{topic} 0/0 k: hello a=b%\n", "", 0)


def test_lines_come_from_standard_input_and_from_a_file(penstock: Run, topic: str, tmp_path: Path) -> None:
    penstock("produce", topic, "--key-separator", ":", "-p", "0", stdin="k1:v1\nk2:v2\n")
    file = tmp_path / "lines.txt"
    file.write_text("three\nfour\n")
    penstock("produce", topic, "--file", str(file), "-p", "0", "-z", "zstd")
    shown = penstock("consume", topic, "--offset", "-3", "-n", "3", "-p", "0", "-o", "json").out
    records = [json.loads(line) for line in shown.splitlines()]
    assert [(one["key"], one["value"]) for one in records] == [("k2", "v2"), (None, "three"), (None, "four")]


def test_a_tombstone_is_written(penstock: Run, topic: str) -> None:
    penstock("produce", topic, "--null", "--key", "gone")
    (line,) = penstock("consume", topic, "--from-time", "1h", "--exit", "-o", "json").out.splitlines()
    assert (json.loads(line)["key"], json.loads(line)["value"]) == ("gone", None)


def test_a_group_commits_what_it_read(penstock: Run, topic: str) -> None:
    penstock("produce", topic, "1", "2", "-p", "0")
    assert penstock("consume", topic, "--group", topic, "--from-beginning", "-n", "1").out == "1\n"
    assert penstock("consume", topic, "--group", topic, "-n", "1").out == "2\n"


def test_settings_are_set_described_and_deleted(penstock: Run, topic: str) -> None:
    assert (
        penstock("configs", "set", "--topic", topic, "retention.ms=5000").err
        == f"✓ changed retention.ms of {topic}\n"
    )
    described = json.loads(penstock("configs", "describe", "-t", topic, "-o", "json").out)
    assert {"name": "retention.ms", "value": "5000", "source": "DYNAMIC_TOPIC_CONFIG"} in described
    assert penstock("configs", "delete", "--topic", topic, "retention.ms").code == 0
    assert penstock("configs", "describe", "--broker", "1", "--all").code == 0


def test_offsets_and_cluster_are_shown(penstock: Run, broker: PenstockBroker, topic: str) -> None:
    offsets = json.loads(penstock("offsets", topic, "-o", "json").out)
    assert offsets[0] == {"topic": topic, "partition": 0, "start_offset": 0, "end_offset": 0}
    assert penstock("offsets").code == 0
    cluster = json.loads(penstock("cluster", "-o", "json").out)
    assert [one["port"] for one in cluster["brokers"]] == [broker.port]
    assert cluster["cluster_id"] in penstock("cluster").out


@pytest.mark.parametrize(
    "words",
    [
        ["nope"],
        ["topics", "create"],
        ["consume", "t", "--offset", "1", "--from-beginning"],
        ["configs", "describe"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_code_2(run: Run, words: list[str]) -> None:
    done = run("penstock", *words)
    assert done.code == 2
    assert "Error: " in done.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(run: Run, shell: str) -> None:
    assert "_PENSTOCK_COMPLETE" in run("penstock", "completion", shell).out


def test_topic_names_are_completed_from_the_broker(broker: PenstockBroker, topic: str) -> None:
    from tests.cli.conftest import BIN

    environment = {
        **os.environ,
        "_PENSTOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": f"penstock topics describe {topic[:-1]}",
        "COMP_CWORD": "3",
        "PENSTOCK_BOOTSTRAP": broker.bootstrap,
    }
    done = subprocess.run(
        [str(BIN / "penstock")], env=environment, capture_output=True, text=True, check=False
    )
    assert f"plain,{topic}" in done.stdout.splitlines()


def test_the_broker_starts_without_the_libraries_of_the_other_verbs() -> None:
    code = (
        "import sys, penstock.cli.main as m\n"
        "try: m.main(['broker', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'click', 'rich', 'confluent_kafka'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_list_of_verbs_names_the_broker(run: Run) -> None:
    shown = run("penstock", "--help")
    assert ["broker", "Start", "a", "broker."] in [line.split() for line in shown.out.splitlines()]
    assert shown.code == 0


def test_the_reference_page_is_what_the_code_says() -> None:
    script = Path(__file__).parents[2] / "scripts" / "generate_command_reference.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("", 0)
