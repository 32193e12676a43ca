"""Is due each millisecond and only sleeps between: how late it comes is what the machine takes from whoever wants a core.

As in `paced`, a stall counts in every moment that was due during it.
"""

import time

from bench.clients.options import print_result, read_options
from bench.measure import percentile

EVERY_S = 0.001


def main() -> None:
    seconds = read_options()["seconds"]
    clock = time.perf_counter
    late: list[float] = []
    began = clock()
    for number in range(int(seconds / EVERY_S)):
        due = began + number * EVERY_S
        if (wait := due - clock()) > 0:
            time.sleep(wait)
        late.append((clock() - due) * 1000)
    late.sort()
    print_result(p99_ms=percentile(late, 0.99), p999_ms=percentile(late, 0.999))


if __name__ == "__main__":
    main()
