"""Finding an offset or a time in a log of many segments and in one of few, in process."""

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.context import Context
from bench.measure import Row, Sample, Scale, percentile
from bench.servers import PENSTOCK
from penstock.records.batch import read_header
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions

FEW, MANY = 10, 1_000
BATCHES_PER_SEGMENT = 64
LOOKUPS = 2_000
REPEATS = 5
READ_BYTES = 1024 * 1024
FIRST_TIMESTAMP_MS = 1_760_000_000_000
VALUE = bytes(900)


class Lookup:
    name = "lookup"
    about = f"offset and time lookups in a log of {MANY:,} segments ÷ in one of {FEW}, in process, medians"
    server_names = (PENSTOCK,)
    rows = (
        Row("offset", f"offset lookup, {MANY:,} segments ÷ {FEW}", "×", "lower", 1.5, bounds="value"),
        Row("time", f"time lookup, {MANY:,} segments ÷ {FEW}", "×", "lower", 1.5, bounds="value"),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=2, quick=0)

    def run(self, context: Context) -> Sample:
        with context.fresh_directory() as directory:
            few, many = open_log(directory, FEW), open_log(directory, MANY)
            # In turns, so that both find the same machine.
            times: dict[str, list[float]] = {}
            for _ in range(REPEATS):
                for size, log in (("few", few), ("many", many)):
                    times.setdefault(f"{size}_offset_us", []).extend(time_offsets(log))
                    times.setdefault(f"{size}_time_us", []).extend(time_timestamps(log))
            few.close()
            many.close()
        medians = {key: percentile(sorted(each), 0.5) for key, each in times.items()}
        return Sample(
            {
                "offset": medians["many_offset_us"] / medians["few_offset_us"],
                "time": medians["many_time_us"] / medians["few_time_us"],
            },
            extra=medians,
        )


def open_log(directory: Path, segment_count: int) -> Log:
    """Written, closed and opened again, as a broker finds it; one record and one millisecond per batch."""
    disk, clock, options = OsDisk(), SystemClock(), LogOptions()
    path = directory / f"lookup{segment_count}-0"
    path.mkdir()
    log = Log.open(disk, str(path), options, clock)
    for number in range(segment_count * BATCHES_PER_SEGMENT):
        if number and number % BATCHES_PER_SEGMENT == 0:
            log.roll()
        batch = memoryview(build_batch([(None, VALUE, (), FIRST_TIMESTAMP_MS + number)]))
        log.append(batch, read_header(batch), 0)
    log.close()
    return Log.open(disk, str(path), options, clock, clean=True, recovery_point=log.end_offset)


def time_offsets(log: Log) -> list[float]:
    wanted = random.Random(1).choices(range(log.end_offset), k=LOOKUPS)
    return time_each(lambda offset: log.read(offset, READ_BYTES), wanted)


def time_timestamps(log: Log) -> list[float]:
    wanted = random.Random(2).choices(range(log.end_offset), k=LOOKUPS)
    return time_each(log.offset_for_timestamp, [FIRST_TIMESTAMP_MS + number for number in wanted])


def time_each(look_up: Callable[[int], object], wanted: Sequence[int]) -> list[float]:
    """Microseconds of each call."""
    clock = time.perf_counter
    times = []
    for value in wanted:
        began = clock()
        look_up(value)
        times.append((clock() - began) * 1e6)
    return times
