"""Directories that Apache Kafka wrote: its topics and configs are read from the metadata that lies beside the logs."""
