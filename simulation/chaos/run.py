"""One run: the cluster and its clients, the faults, the healing, and the verdict."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.testing.clusters import BrokerCluster, create_topic, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import ProcessFailed
from penstock.testing.zookeeper import ZooKeeperEnsemble
from simulation.apache.kafka_cluster import SMALL_HEAP, KafkaCluster
from simulation.apache.mixed_cluster import KAFKA, PENSTOCK, MixedCluster
from simulation.chaos.inject import Injector
from simulation.chaos.ledger import Ledger
from simulation.chaos.load import Load, end_offsets, read_back
from simulation.chaos.loop_lag import LAG, LISTENER_OPTION, OWN_LAG, Buckets, LagWatch
from simulation.chaos.plan import FaultKind, steps

TOPIC = "chaos"
BROKER_COUNT = 3
SESSION_TIMEOUT_S = 6.0
WARM_UP_S = 3.0
SYNC_TIMEOUT_S = 90.0
HEAL_TIMEOUT_S = 180.0
CATCH_UP_TIMEOUT_S = 120.0
TICK_S = 0.5
# What the ledger has room for: 16 bytes each, and one more of each record of the partition that is being read back; 730 MB in
# all with the slack of arrays that grow. Brokers keep three times 110 bytes of each on disk, 13 GB.
MAX_RECORDS = 40_000_000
BUG = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Settings:
    seconds: float
    seed: int
    peer: str = "penstock"
    """Or "kafka": the same on Apache Kafka 3.9, which proves the checker; or "mixed": two of these and one of ours."""
    acks: str = "all"
    unclean: bool = False  # with acks 1 it proves that the checker finds losses
    severe: bool = False
    rate: int | None = None  # records a second; None: as many as the machine bears
    producers: int = 2
    consumers: int = 2
    partitions: int = 6
    record_bytes: int = 100

    @property
    def highest_rate(self) -> float:
        """With which there will not be more records than the ledger has room for, however long it takes to heal."""
        most = MAX_RECORDS / (self.seconds + SYNC_TIMEOUT_S + HEAL_TIMEOUT_S)
        return most if self.rate is None else min(self.rate, most)


@dataclass
class Report:
    settings: Settings
    ledger: Ledger
    faults: Counter[FaultKind] = field(default_factory=Counter)
    load_seconds: float = 0.0
    loop_lag: Buckets = field(default_factory=dict)
    own_loop_lag: Buckets = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)  # what kept the run from its end

    @property
    def is_clean(self) -> bool:
        return not self.problems and not any(self.ledger.wrong.values())


class EventLog:
    """What happened when, one line each."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self.last = ""

    def __call__(self, text: str) -> None:
        self.last = text
        now = time.time()
        clock = time.strftime("%H:%M:%S", time.localtime(now))
        self._file.write(f"{clock}.{int(now * 1000) % 1000:03} {text}\n")

    def close(self) -> None:
        self._file.close()


# Told the share that is done, 0 to 1, what happens now, and the ledger as it grows.
Progress = Callable[[float, str, Ledger], None]


def run_chaos(settings: Settings, directory: Path, *, progress: Progress | None = None) -> Report:
    """`directory` receives everything: data, logs and chaos.log."""
    directory.mkdir(parents=True, exist_ok=True)
    report = Report(settings, Ledger())
    with ExitStack() as stack:
        events = EventLog(directory / "chaos.log")
        stack.callback(events.close)
        events(f"seed {settings.seed}, {settings}")
        ticker = stack.enter_context(_Ticker(settings, events, report.ledger, progress))
        zookeeper = stack.enter_context(ZooKeeperEnsemble(directory / "zookeeper"))
        cluster = stack.enter_context(_start_cluster(settings, directory, zookeeper))
        try:
            _run(settings, cluster, zookeeper, events, report, ticker)
        except (ProcessFailed, TimeoutError) as problem:
            events(f"problem: {problem}")
            report.problems.append(str(problem))
        for broker_id in cluster.broker_ids:
            if BUG in cluster.log_text(broker_id):
                report.problems.append(f"broker {broker_id} logged a bug of its own")
    return report


def _start_cluster(settings: Settings, directory: Path, zookeeper: ZooKeeperEnsemble) -> BrokerCluster:
    options = {
        "group.initial.rebalance.delay.ms": "0",
        "unclean.leader.election.enable": str(settings.unclean).lower(),
    }
    timeout_ms = int(SESSION_TIMEOUT_S * 1000)
    if settings.peer == "kafka":
        return KafkaCluster(
            directory,
            brokers=BROKER_COUNT,
            properties=options,
            zookeeper=zookeeper,
            session_timeout_ms=timeout_ms,
            heap=SMALL_HEAP,
        )
    if settings.peer == "mixed":
        return MixedCluster(
            directory,
            {1: KAFKA, 2: PENSTOCK, 3: KAFKA},
            properties={**options, "transaction.state.log.min.isr": "2"},
            zookeeper=zookeeper,
            session_timeout_ms=timeout_ms,
        )
    options[LISTENER_OPTION[0]] = LISTENER_OPTION[1]
    return PenstockCluster(
        directory, brokers=BROKER_COUNT, options=options, zookeeper=zookeeper, session_timeout_ms=timeout_ms
    )


def _run(
    settings: Settings,
    cluster: BrokerCluster,
    zookeeper: ZooKeeperEnsemble,
    events: EventLog,
    report: Report,
    ticker: "_Ticker",
) -> None:
    min_isr = "1" if settings.acks == "1" else "2"
    create_topic(
        cluster.bootstrap, TOPIC, partitions=settings.partitions, config={"min.insync.replicas": min_isr}
    )
    wait_until_in_sync(cluster.bootstrap, [TOPIC])
    ledger = report.ledger
    load = Load(
        cluster.bootstrap,
        TOPIC,
        ledger,
        partition_count=settings.partitions,
        producer_count=settings.producers,
        consumer_count=settings.consumers,
        rate=settings.highest_rate,
        record_bytes=settings.record_bytes,
        acks=settings.acks,
    )
    load.start()
    began = time.monotonic()
    wait_until(lambda: ledger.acknowledged_count > 0, "the first acknowledgement")
    ticker.begin()
    injector = Injector(cluster, zookeeper, events)
    report.faults = injector.counts
    lag = LagWatch(cluster, injector.pauses)
    try:
        with lag:
            _hurt(settings, cluster, injector, events)
        events("healing")
        wait_until_in_sync(cluster.bootstrap, [TOPIC], timeout_s=HEAL_TIMEOUT_S)
    finally:
        report.loop_lag, report.own_loop_lag = lag.buckets(LAG), lag.buckets(OWN_LAG)
        load.finish_producing()
        report.load_seconds = time.monotonic() - began
        events("all producers have ended")
        _read_and_check(cluster, load, ledger, settings, events)


def _hurt(settings: Settings, cluster: BrokerCluster, injector: Injector, events: EventLog) -> None:
    until = time.monotonic() + settings.seconds
    plan = steps(
        settings.seed,
        broker_ids=cluster.broker_ids,
        session_timeout_s=SESSION_TIMEOUT_S,
        severe=settings.severe,
    )
    time.sleep(min(WARM_UP_S, settings.seconds))
    for step in plan:
        if time.monotonic() > until:
            return
        injector.run(step)
        time.sleep(min(step.rest_s, max(0.0, until - time.monotonic())))
        if step.waits_for_sync:
            wait_until_in_sync(cluster.bootstrap, [TOPIC], timeout_s=SYNC_TIMEOUT_S)
            events("all in sync")


def _read_and_check(
    cluster: BrokerCluster, load: Load, ledger: Ledger, settings: Settings, events: EventLog
) -> None:
    ends = end_offsets(cluster.bootstrap, TOPIC, settings.partitions)
    events(f"the partitions end at {list(ends.values())}; consumers read to their end")
    with suppress(ProcessFailed):  # what they have not read then counts as not delivered
        wait_until(
            lambda: all(ledger.has_consumed_up_to(partition, end) for partition, end in ends.items()),
            "the consumers' end",
            timeout_s=CATCH_UP_TIMEOUT_S,
        )
    load.finish_consuming()
    for partition in ends:
        events(f"reading partition {partition} from its start")
        ledger.check(partition, read_back(cluster.bootstrap, TOPIC, partition))
    events("; ".join(f"{count} {wrong}" for wrong, count in ledger.wrong.items()) or "nothing is wrong")


class _Ticker:
    """Tells of the progress twice a second, from a thread of its own."""

    def __init__(
        self, settings: Settings, events: EventLog, ledger: Ledger, progress: Progress | None
    ) -> None:
        self._seconds, self._events, self._ledger = settings.seconds, events, ledger
        self._progress = progress
        self._began: float | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="progress")

    def begin(self) -> None:
        """The clock of the faults starts now."""
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while self._progress is not None and not self._ends.wait(TICK_S):
            passed_s = 0.0 if self._began is None else time.monotonic() - self._began
            self._progress(min(1.0, passed_s / max(self._seconds, TICK_S)), self._events.last, self._ledger)
