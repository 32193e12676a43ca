"""Plans of `penstock.streams` on Spark's long tasks, one at a time, by words on standard input, until that ends:

    start KIND APPLICATION SOURCE TABLE TARGET GUARANTEE     answered with "running", once all tasks read
    stop                                                     answered with "stopped"

bench/java/StreamsPlans.java knows the same words and has the same plans for Kafka Streams.
"""

import sys

import penstock.spark
from bench.clients.options import read_options
from penstock.spark.tasks import JobState
from penstock.streams import App, col, fn, tumbling

START_TIMEOUT_S = 60.0


def build(kind: str, app: App, source: str, table: str, target: str) -> None:
    stream = app.stream(source, key=str, value=str)
    if kind == "stateless":
        passed = stream.filter(~col("value").like("%!"))
        passed.map_values(value=fn("UCASE", col("value"))).to(target)
    elif kind == "function":
        passed = stream.filter(lambda row: not row["value"].endswith("!"))
        passed.map_values(lambda row: row["value"].upper(), value=str).to(target)
    elif kind == "count":
        stream.group_by_key().count().to(target)
    elif kind == "window-count":
        stream.group_by_key().window(tumbling(minutes=1, grace="1 hour")).count().to(target)
    elif kind == "join":
        joined = stream.join(app.table(table, key=str, value=str), suffix="_of_table")
        joined.select(value=fn("CONCAT", col("value"), col("value_of_table"))).to(target)
    elif kind == "latest":
        counted = stream.group_by_key().aggregate(
            count=fn("COUNT", 1), latest=fn("LATEST_BY_OFFSET", col("value"))
        )
        counted.to(target, value_format="JSON")
    else:
        raise SystemExit(f"no plan is called {kind}")


def say(word: str) -> None:
    print(word, flush=True)


def main() -> None:
    options = read_options()
    spark = penstock.spark.session("bench", long_tasks=True)
    app = None
    say("ready")
    try:
        for line in sys.stdin:
            word, *given = line.split()
            if word == "start":
                kind, application, source, table, target, guarantee = given
                app = App(
                    application,
                    bootstrap=options["bootstrap"],
                    guarantee=guarantee,
                    key_format="KAFKA",
                    value_format="KAFKA",
                )
                build(kind, app, source, table, target)
                query = app.start(spark=spark, parallelism=options["tasks"])
                state = query.wait_until_running(START_TIMEOUT_S)
                if state != JobState.RUNNING:
                    raise SystemExit(f"{kind} is {state}: {query.errors}")
                say("running")
            elif app is not None:
                app.stop()
                app = None
                say("stopped")
    finally:
        if app is not None:
            app.stop()
        spark.stop()


if __name__ == "__main__":
    main()
