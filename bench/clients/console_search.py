"""Searches a topic as the console does, on one core, and cancels searches in their middle.

Each search looks for one record of all, newest first, so that it reads the whole topic; what it finds is checked.
"""

import os
import threading
import time
from typing import Any

from bench.clients.fill_orders import VALUE_BYTES
from bench.clients.options import print_result, read_options
from penstock.console.messages.decode import PartDecoder
from penstock.console.messages.jobs import Jobs
from penstock.console.messages.model import Search, Source
from penstock.console.messages.rows import Rows
from penstock.console.messages.scan import Scan
from penstock.console.messages.wanted import Wanted

CANCELS = 10
WAIT_S = 10.0


def wanted(number: int) -> dict[str, Wanted]:
    """What finds the record with this number, and no other."""
    return {
        "text": Wanted(text=f"meter {number:08}"),
        "pattern": Wanted(text=f"METER 0*{number}\\b", is_pattern=True, ignores_case=True),
        "json": Wanted(path=f"$.order.total > 0 and $.order.id == {number}"),
    }


def scan_of(options: dict[str, Any], looked_for: Wanted, stopped: threading.Event) -> Scan:
    topic = options["topic"]
    rows = Rows(PartDecoder(topic, is_key=True), PartDecoder(topic, is_key=False), None)
    return Scan(Source(bootstrap=options["bootstrap"]), Search(topic=topic, wanted=looked_for), rows, stopped)


def searched(options: dict[str, Any], looked_for: Wanted) -> tuple[float, float]:
    """(MB/s, CPU seconds for a GB) of values."""
    size_bytes = options["record_count"] * VALUE_BYTES
    scan = scan_of(options, looked_for, threading.Event())
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    scan.run()
    seconds, cpu_seconds = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    if len(scan.top.rows()) != 1 or scan.progress.counts.records != options["record_count"]:
        raise SystemExit(f"{len(scan.top.rows())} found in {scan.progress.counts.records} records")
    return size_bytes / 1e6 / seconds, cpu_seconds / size_bytes * 1e9


def cancelled_ms(options: dict[str, Any], looked_for: Wanted, *, after_s: float) -> float:
    """From the wish until the thread of the search has ended."""
    jobs, stopped = Jobs(), threading.Event()
    scan = scan_of(options, looked_for, stopped)
    job = jobs.start("search", scan.progress, stopped, scan.run)
    time.sleep(after_s)
    began_s = time.perf_counter()
    job.cancel()
    while jobs.running():
        if time.perf_counter() - began_s > WAIT_S:
            raise SystemExit("a cancelled search goes on")
        time.sleep(0.001)
    return (time.perf_counter() - began_s) * 1000


def main() -> None:
    options = read_options()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    looked_for = wanted(options["record_count"] // 2)
    searched({**options}, looked_for["text"])  # compiled code is loaded
    values: dict[str, float] = {}
    for name, one in looked_for.items():
        values[name], values[f"{name}_cpu"] = searched(options, one)
    seconds = options["record_count"] * VALUE_BYTES / 1e6 / values["json"]
    waits = [
        cancelled_ms(options, looked_for["json"], after_s=seconds * (1 + each) / (CANCELS + 2))
        for each in range(CANCELS)
    ]
    print_result(**values, cancel_ms=max(waits))


if __name__ == "__main__":
    main()
