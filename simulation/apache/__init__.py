"""Apache Kafka's brokers, clusters and tools as processes beside ours: what tests and benches compare with."""
