"""Kafka REST's v2: topics, partitions, brokers; records written; consumer instances. One module for each resource.

The content type says in which format keys and values stand (`content`).
"""
