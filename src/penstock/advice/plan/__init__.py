"""What a cluster should be for what is wanted of it: partitions, brokers, replicas, disk, network, with the arithmetic.

    from penstock.advice.plan import Wanted, plan

    advice = plan(Wanted(bytes_per_s=50e6, record_bytes=1000, retention_s=7 * 86_400))
    print(advice.brokers, advice.partitions)
    for line in advice.lines:
        print(line)

The one path: `Wanted` → `arithmetic.plan` (pure) → `Advice`. `measured` makes a `Wanted` of what the doctor's facts say of a
running cluster, and `limits` warns of what is beyond the usual there. `units` reads `50MB/s` and `7d`. Promised: more
throughput, replicas, retention, growth or consumers never give fewer partitions, brokers or bytes of disk. Not promised: that
a machine reaches the figures; they are rules of thumb that one can set (`Assumptions`).
"""

from penstock.advice.plan.arithmetic import plan
from penstock.advice.plan.model import Advice, Assumptions, Line, Wanted

__all__ = ["Advice", "Assumptions", "Line", "Wanted", "plan"]
