"""Kafka REST's v3: the cluster as resources with links. One module for each kind; `shapes` makes what they have in common.

All of it is asked of the brokers by `admin.Cluster` in threads; `records` and `batch` write by the login's producer.
"""
