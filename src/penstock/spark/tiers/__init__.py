"""One call for a stream from topic to topic (`stream`), in Spark's real-time mode where the query allows it: `plans` and
`real_time` say whether it does, `checkpoints` keep the two ways apart."""
