"""The REST API of Kafka Connect on the frame of all HTTP services: `routes` has the table, `service` the life of a worker,
`asking` how a call finds the leader, `numbers` the metrics.
"""
