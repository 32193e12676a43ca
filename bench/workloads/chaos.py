"""How late the brokers' event loops come while brokers and ZooKeeper are killed and stopped under load."""

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.servers import KAFKA_3, PENSTOCK_3
from simulation.chaos.loop_lag import quantile
from simulation.chaos.run import Settings, run_chaos

SIDES = (KAFKA_3, PENSTOCK_3)
RATE = 5_000
"""Records a second: as many as the machine bears would measure how the cores are shared."""
SECONDS = 90.0
P999 = 0.999


class LoopLagUnderFaults:
    """Only ours have such a loop. Stopped processes are left out."""

    name = "chaos"
    server_names = (PENSTOCK_3,)
    about = (
        f"kill -9, SIGTERM and SIGSTOP of brokers and of ZooKeeper's leader for {SECONDS:.0f} s, {RATE:,} records/s of 100 B, "
        "acks=all, RF 3: how late the brokers' event loops come"
    )
    rows = (
        Row(
            "lag_ms",
            "event loops under faults: late, p99.9",
            "ms",
            "lower",
            20.0,
            bounds="value",
            sides=SIDES,
        ),
        Row(
            *("own_lag_ms", "… of it, without waits for one of the two cores", "ms", "lower", 20.0),
            bounds="value",
            sides=SIDES,
        ),
    )

    def __init__(self) -> None:
        self._runs = 0

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        self._runs += 1
        with context.fresh_directory() as directory:
            settings = Settings(seconds=SECONDS, seed=self._runs, rate=RATE)
            report = run_chaos(settings, directory)
        if not report.is_clean:
            raise RuntimeError(f"chaos: {report.problems or report.ledger.wrong}")
        return Sample(
            {
                "lag_ms": quantile(report.loop_lag, P999) * 1000,
                "own_lag_ms": quantile(report.own_loop_lag, P999) * 1000,
            },
            extra={"records": float(report.ledger.acknowledged_count)},
        )
