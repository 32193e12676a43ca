"""Topics as Arrow tables: `read` gives a `pyarrow.Table`, `batches` a reader that keeps only a few batches in memory.

    import penstock.arrow
    table = penstock.arrow.read("orders", start="earliest", bootstrap="localhost:9092")

How it works: `scan.TopicScan` asks the cluster (`client.topics.Client`) for the offsets of the wanted range in each partition.
`client.fetching.fetch` reads it, with one thread per leader, ahead of the decoder. `records.columnar` makes columns of it.
Values with the id of a schema: `registry_values` finds the schemas and reads them, `registry_writing` makes them, by the
formats in `avro_format`, `protobuf_format` and `json_format`. penstock.spark uses the same.

Promised: the range is fixed when the call begins. Every record in it is there once, in order within its partition. Records
behind an open transaction and records of aborted ones are left out, unless `isolation="read_uncommitted"`. It works with every
cluster that speaks the Kafka protocol from 0.11 on. Not promised: an order between partitions; records that retention deletes
during the read (that is an error).
`client.security` says how TLS and SASL are set.

Needs the extra `arrow`: pip install 'penstock[arrow]'.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.arrow.scan import TopicScan, batches, read
    from penstock.client.errors import AccessRefused, BadOption, NoSuchTopic, ReadFailed

__all__ = ["read", "batches", "TopicScan", "AccessRefused", "BadOption", "NoSuchTopic", "ReadFailed"]


def __getattr__(name: str) -> Any:
    """pyarrow and numba are imported at the first use."""
    if name in ("read", "batches", "TopicScan"):
        try:
            from penstock.arrow import scan
        except ModuleNotFoundError as error:
            if error.name != "pyarrow":
                raise
            raise ModuleNotFoundError(
                "topics as tables need pyarrow: pip install 'penstock[arrow]'", name="pyarrow"
            ) from None
        return getattr(scan, name)
    if name in ("AccessRefused", "BadOption", "NoSuchTopic", "ReadFailed"):
        from penstock.client import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
