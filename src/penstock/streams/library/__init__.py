"""Programs over topics in Python: what Kafka Streams is for Java.

    from penstock.streams import App, col, tumbling

    app = App("visits", bootstrap="localhost:9092")
    clicks = app.stream("clicks", key={"user": str}, value={"page": str, "ms": int})
    clicks.filter(col("ms") > 100).group_by("page").window(tumbling(minutes=1)).count().to("visits")
    app.run()

`app` collects what is declared, and runs, tests and explains it. `stream`, `table`, `grouped` and `joins` have the
operations; each
checks its arguments and makes nodes of `streams.plan`. `columns` are expressions, `callables` the user's functions where
an expression or a step is wanted, `values` carry rows from and to Python's types. `driver` runs a program in this process,
`running` on Spark, and `stores` ask either for its state.

What cannot be is refused by the call that asks for it, with TopologyError and one line. Nothing here imports Spark
before a program
is started.
"""
