"""Load on a cluster: what kafka-producer-perf-test, kafka-consumer-perf-test, kafka-e2e-latency and the verifiable clients do.

A tool reads its options into a plan and hands it to `sending.Sender`, `reading.Reader`, `round_trips.RoundTrips`,
`counting.CountingProducer` or `counting.CountingConsumer`. Those run librdkafka's clients (`clients` has what they share), pace
the records (`measuring.Throughput`) and keep times (`measuring.Latencies`, `statistics`).

Lines and events go, in Kafka's words, to functions that are given. Nothing here prints, takes signals or knows a command line.
A run ends early when `is_over` says so.
"""
