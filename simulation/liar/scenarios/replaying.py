"""`penstock dlq replay`, the command itself: killed, begun again, sometimes after the cluster forgot its offsets."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from penstock.consumer import Poison, Processor, Record
from simulation.liar.act import Act, Over, difference
from simulation.liar.world import numbered

GROUP: Final = "penstock-dlq-replay"
PARTITIONS: Final = 2
PROPERTIES: Final = (
    "socket.timeout.ms=2000\nreconnect.backoff.ms=10\nreconnect.backoff.max.ms=100\n"
    "retry.backoff.ms=10\nretry.backoff.max.ms=100\n"
)
END_S: Final = 60.0
NOTHING_LEFT: Final = "replayed nothing; 0 left"


def replay_dead_letters(act: Act) -> None:
    """Each dead letter goes back to its topic once."""
    chance = act.chance
    topic, letters = act.name, f"{act.name}.dlq"
    truth = act.world.truth
    truth.create(topic, PARTITIONS)
    truth.create(letters, chance.randint(1, 3))
    expected = _fill(act, topic, letters)
    act.begin()
    with tempfile.TemporaryDirectory(prefix="penstock-liar-") as directory:
        properties = Path(directory) / "client.properties"
        properties.write_text(PROPERTIES)
        kills = chance.randint(0, 2)
        while True:
            limit = chance.randint(3, 20) if chance.random() < 0.5 else None
            was_healthy = not act.liar.is_lying
            kill_after_s = chance.uniform(0.3, 2.0) if kills else None
            ended = _run(act, letters, properties, limit=limit, kill_after_s=kill_after_s)
            kills -= kill_after_s is not None
            if ended is not None and ended.returncode == 0:
                if NOTHING_LEFT in ended.stderr:
                    break
                if chance.random() < 0.3:
                    truth.delete_group(GROUP)
            elif ended is not None and was_healthy:
                act.wrong(f"fails though the cluster is healthy: {ended.stderr.strip()[-300:]}")
                raise Over
            if not act.is_time_left():
                raise Over
    differs = difference(Counter(truth.values(topic, PARTITIONS)), expected)
    if differs is not None:
        act.wrong(f"replayed: {differs}")


def _die(record: Record) -> None:
    raise Poison("not good", record=record)


def _fill(act: Act, topic: str, letters: str) -> Counter[bytes]:
    """All records of the topic become dead letters; after the replay each is there twice."""
    rows = list(numbered(topic, act.chance.randint(5, 60), PARTITIONS))
    act.world.fill(topic, rows)
    Processor(
        topic,
        group=topic,
        handler=_die,
        bootstrap=act.world.broker.bootstrap,
        dead_letter_topic=letters,
        settings={"log_level": 0},
        stop_at_end=True,
    ).run()
    return Counter(2 * [value for _, _, value in rows])


def _run(
    act: Act, letters: str, properties: Path, *, limit: int | None, kill_after_s: float | None
) -> subprocess.CompletedProcess[str] | None:
    """None: killed."""
    command = [
        sys.executable, "-m", "penstock", "dlq", "replay", letters,
        "--bootstrap-server", act.liar.bootstrap, "--command-config", str(properties),
    ]  # fmt: skip
    if limit is not None:
        command += ["--limit", str(limit)]
    began_s = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, complaint = process.communicate(timeout=kill_after_s or END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            if kill_after_s is None:
                act.wrong(f"a replay has not ended after {time.monotonic() - began_s:.0f} s")
                raise Over from None
            return None
    if "Traceback" in complaint:
        act.wrong(f"a replay ends with a bug: {complaint[-500:]}")
        raise Over
    if process.returncode:
        act.met(RuntimeError(complaint.strip()))
    return subprocess.CompletedProcess(command, process.returncode, out, complaint)
