"""A whole stack of `penstock up` without Spark: its resident memory, and the time until all of it is healthy."""

import os
import subprocess
import sys
import time
from pathlib import Path

from bench.context import Context
from bench.measure import MEGABYTE, Row, Sample, Scale
from bench.servers import PENSTOCK
from penstock.stack import processes
from penstock.stack.services import SERVICES
from penstock.stack.stack import Stack
from penstock.stack.stack_file import existing_stack

OURS = (PENSTOCK, PENSTOCK)
TIMEOUT_S = 180.0
SETTLE_S = 5.0
KIBIBYTE = 1024
FILE = """
brokers: {count: 3}
registry:
rest:
connect: {settings: {penstock.connect.master: none}}
console:
"""


class WholeStack:
    name = "stack"
    about = (
        "3 brokers, ZooKeeper, registry, REST, Connect without Spark, console on an empty directory: `penstock up --file` until "
        f"its end; memory {SETTLE_S:g} s later, of all processes with their children"
    )
    server_names = (PENSTOCK,)
    rows = (
        Row(
            "ready_s",
            "a whole stack, until all is healthy",
            "s",
            "lower",
            8,
            "start",
            bounds="value",
            sides=OURS,
        ),
        Row("pss_mb", "… memory, proportional set size", "MB", "lower", 700, bounds="value", sides=OURS),
        Row("rss_mb", "… memory, sum of resident sets", "MB", "lower", None, sides=OURS),
        Row("down_s", "… until it is stopped", "s", "lower", None, sides=OURS),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        with context.fresh_directory() as directory:
            file = directory / "penstock.yaml"
            file.write_text(FILE)
            ports = [word for service in SERVICES for word in (service.port_option, "0")]
            context.settle()
            began = time.monotonic()
            try:
                penstock("up", "--file", str(file), *ports)
                ready_s = time.monotonic() - began
                stack = existing_stack(directory / "penstock-data")
                cpu_s = sum(map(cpu_of_process, with_children(pids_of(stack))))
                time.sleep(SETTLE_S)
                pss, rss = memory_of(stack)
                stopping = time.monotonic()
            finally:
                penstock("down", "--file", str(file))
            down_s = time.monotonic() - stopping
        return Sample(
            {"ready_s": ready_s, "pss_mb": pss / MEGABYTE, "rss_mb": rss / MEGABYTE, "down_s": down_s},
            {"ready_s": cpu_s},
        )


def penstock(*words: str) -> None:
    command = [sys.executable, "-m", "penstock", *words]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)


def memory_of(stack: Stack) -> tuple[int, int]:
    """Proportional and resident bytes of all members, with the processes that they have started."""
    found = [memory_of_process(pid) for pid in with_children(pids_of(stack))]
    return sum(pss for pss, _ in found), sum(rss for _, rss in found)


def pids_of(stack: Stack) -> list[int]:
    return [pid for member in stack.members if (pid := processes.running_pid(stack, member)) is not None]


def cpu_of_process(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def with_children(pids: list[int]) -> list[int]:
    everyone = list(pids)
    for pid in everyone:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            everyone += [int(child) for child in task.read_text().split()]
    return everyone


def memory_of_process(pid: int) -> tuple[int, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines[1:])}
    return sizes["Pss"] * KIBIBYTE, sizes["Rss"] * KIBIBYTE
