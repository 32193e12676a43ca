"""Sleeps a millisecond at a time and tells how late it woke: what the machine itself takes from whoever wants a core."""

import time

from bench.clients.options import print_result, read_options
from bench.measure import percentile

SLEEP_S = 0.001


def main() -> None:
    seconds = read_options()["seconds"]
    clock = time.perf_counter
    late: list[float] = []
    end = clock() + seconds
    while (began := clock()) < end:
        time.sleep(SLEEP_S)
        late.append((clock() - began - SLEEP_S) * 1000)
    late.sort()
    print_result(p99_ms=percentile(late, 0.99), p999_ms=percentile(late, 0.999))


if __name__ == "__main__":
    main()
