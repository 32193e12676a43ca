"""Penstock: an event-streaming platform of Apache Kafka's kind, written in Python."""

__version__ = "0.1.0"
