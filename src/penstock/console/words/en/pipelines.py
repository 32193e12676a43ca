"""The screen of pipelines."""

WORDS = {
    "pipelines.title": "Pipelines",
    "pipelines.subtitle": "Queries of SQL and Spark, and programs of streams",
    "pipelines.count": "{count} pipelines",
    "pipelines.failed": "{count} failed",
    "pipelines.kind": "Type",
    "pipelines.kind_sql": "SQL",
    "pipelines.kind_spark": "Spark",
    "pipelines.kind_streams": "Streams",
    "pipelines.state": "State",
    "pipelines.tier": "Tier",
    "pipelines.rate": "Rows/s",
    "pipelines.latency": "Latency",
    "pipelines.lag": "Lag",
    "pipelines.state_size": "State size",
    "pipelines.rows": "{count} rows",
    "pipelines.watermark": "Watermark",
    "pipelines.error": "Last error",
    "pipelines.details": "Details",
    "pipelines.reads": "Reads",
    "pipelines.writes": "Writes",
    "pipelines.to_group": "Its group",
    "pipelines.latency_spark": "The latency is the time that the last batch took.",
    "pipelines.none": (
        "No pipeline is known. Queries of the SQL server and groups of Spark are found by themselves;"
        " for more of Spark give --spark-url."
    ),
}
