"""`make demo`: start a broker, create a topic, produce and consume, and say what to try next.

Everything goes over the Kafka protocol with an ordinary client (confluent-kafka), so any other client would do.
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.testing.penstock_broker import PenstockBroker

TOPIC = "measurements"
PARTITIONS = 6
RECORDS = 100_000
DEADLINE_SECONDS = 60.0
# A group of one has nobody to wait for.
OPTIONS = {"group.initial.rebalance.delay.ms": "0"}
SENSORS = ("inlet", "penstock", "turbine", "tailrace")

console = Console()


def progress() -> Progress:
    return Progress(
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(DEADLINE_SECONDS)


def produce(bootstrap: str) -> float:
    chance = random.Random(7)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "compression.type": "lz4"})
    started = time.perf_counter()
    with progress() as bar:
        task = bar.add_task("produce", total=RECORDS)
        for number in range(RECORDS):
            sensor = SENSORS[number % len(SENSORS)]
            value = {"sensor": sensor, "flow_m3s": round(chance.gauss(42, 3), 2), "number": number}
            producer.produce(TOPIC, key=sensor, value=json.dumps(value))
            if number % 1000 == 999:
                producer.poll(0)
                bar.update(task, completed=number + 1)
        left = producer.flush(DEADLINE_SECONDS)
    if left:
        raise SystemExit(f"demo: {left} records were not acknowledged")
    return time.perf_counter() - started


def consume(bootstrap: str) -> tuple[float, dict[str, list[float]]]:
    flows: dict[str, list[float]] = {sensor: [] for sensor in SENSORS}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "demo", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    started = time.perf_counter()
    seen = 0
    try:
        with progress() as bar:
            task = bar.add_task("consume", total=RECORDS)
            while seen < RECORDS:
                if time.perf_counter() - started > DEADLINE_SECONDS:
                    raise SystemExit(f"demo: only {seen} of {RECORDS} records came back")
                for message in consumer.consume(5000, timeout=1.0):
                    if message.error():
                        raise SystemExit(f"demo: {message.error()}")
                    record = json.loads(message.value() or b"{}")
                    flows[record["sensor"]].append(record["flow_m3s"])
                    seen += 1
                bar.update(task, completed=seen)
    finally:
        consumer.close()
    return time.perf_counter() - started, flows


def show(
    start_seconds: float,
    broker: PenstockBroker,
    produced: float,
    consumed: float,
    flows: dict[str, list[float]],
) -> None:
    table = Table(title="What the broker did", title_justify="left")
    table.add_column("step")
    table.add_column("result", justify="right")
    table.add_row("start to ready", f"{start_seconds * 1000:.0f} ms")
    table.add_row("produce", f"{RECORDS / produced:,.0f} records/s")
    table.add_row("consume, with joining a group", f"{RECORDS / consumed:,.0f} records/s")
    table.add_row("memory of the broker", f"{broker.usage().resident_bytes / 2**20:.0f} MB")
    console.print(table)
    averages = ", ".join(f"{sensor} {sum(values) / len(values):.2f}" for sensor, values in flows.items())
    console.print(f"average flow in m³/s: {averages}")


def next_steps(bootstrap: str) -> None:
    console.print("\n[bold]Try next[/bold]")
    for line in (
        f"bin/penstock topics describe {TOPIC} -b {bootstrap}",
        f"bin/penstock consume {TOPIC} -n 5 --from-beginning -b {bootstrap}",
        f"bin/kafka-console-producer --bootstrap-server {bootstrap} --topic {TOPIC}",
        f"bin/kafka-get-offsets --bootstrap-server {bootstrap} --topic {TOPIC}",
    ):
        console.print(f"  {line}", soft_wrap=True, highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the broker running afterwards")
    parser.add_argument("--port", type=int, default=None, help="the broker's port (default: a free one)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
        started = time.perf_counter()
        with PenstockBroker(Path(directory), port=args.port, options=OPTIONS) as broker:
            start_seconds = time.perf_counter() - started
            console.print(f"a broker is listening on [bold]{broker.bootstrap}[/bold]")
            create_topic(broker.bootstrap)
            console.print(f"topic [bold]{TOPIC}[/bold] with {PARTITIONS} partitions is there")
            produced = produce(broker.bootstrap)
            consumed, flows = consume(broker.bootstrap)
            show(start_seconds, broker, produced, consumed, flows)
            if args.keep:
                next_steps(broker.bootstrap)
                console.print("\nThe broker stays up until Ctrl-C.")
                try:
                    broker.process.wait(timeout_s=24 * 3600)
                except KeyboardInterrupt:
                    console.print("stopping")
            else:
                console.print(
                    "\nThe broker of this demo stops now. [bold]make demo KEEP=1[/bold] keeps it up and shows what to try; or"
                    " start your own:\n  bin/penstock broker --port 9092 --data ./data"
                )


if __name__ == "__main__":
    main()
