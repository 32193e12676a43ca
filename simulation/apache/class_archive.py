"""An archive of the classes that Apache Kafka loads, mapped into memory at the next start of a quick JVM (java.py).

    python -m simulation.apache.class_archive [VERSION]

runs a broker, writes and reads a topic as a member of a group, and keeps what the JVM loaded for it (some 60 MB, beside the
jars). It does nothing when there is an archive for this Java and these jars. Nothing depends on it.
"""

import fcntl
import os
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Producer

from simulation.apache.apache_kafka import QUICK_HEAP, ApacheKafka
from simulation.apache.java import DEFAULT_VERSION, archive_path

WAIT_S = 60.0


def make_archive(version: str = DEFAULT_VERSION) -> Path:
    """Safe to call from several processes at once: the others wait for the first."""
    path = archive_path(version)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            for old in path.parent.glob("classes-*.jsa"):
                old.unlink()
            draft = path.with_suffix(f".{os.getpid()}")
            with tempfile.TemporaryDirectory() as directory:
                heap = (*QUICK_HEAP, f"-XX:ArchiveClassesAtExit={draft}")
                with ApacheKafka(Path(directory), version=version, heap=heap, quick=True) as kafka:
                    _exercise(kafka.bootstrap)
            if draft.exists():  # not every Java can
                draft.rename(path)
    return path


def _exercise(bootstrap: str) -> None:
    common: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
    producer = Producer({**common, "transactional.id": "archive"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("archive", b"value", b"key")
    producer.commit_transaction(WAIT_S)
    consumer = Consumer({**common, "group.id": "archive", "auto.offset.reset": "earliest"})
    consumer.subscribe(["archive"])
    consumer.poll(WAIT_S)
    consumer.close()


if __name__ == "__main__":
    make_archive(*sys.argv[1:2])
