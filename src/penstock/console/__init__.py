"""The web console: pages over one or several clusters, ours or Apache Kafka's."""
