"""kafka-dump-log: what is in the files of a log, and whether they fit together."""

import os
import sys

from penstock.cli.failures import UserError
from penstock.cli.kafka import tool
from penstock.cli.kafka.dump_decoders import CHOICES, Decoder, coordinator_decoder, value_decoder
from penstock.cli.kafka.dump_indexes import Findings, dump_offset_index, dump_time_index
from penstock.cli.kafka.dump_log_file import LogDump, NotABatch
from penstock.cli.kafka.dump_state import dump_producer_snapshot, dump_transaction_index
from penstock.cli.kafka.options import Option, Options, OptionTable
from penstock.records.batch import InvalidRecord

DEFAULT_DECODER = "org.apache.kafka.tools.api.StringDecoder"
ALL_BYTES = 2**31 - 1
NOT_DECODED = ("cluster-metadata-decoder", "remote-log-metadata-decoder")

TABLE = OptionTable(
    "kafka-dump-log",
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
    "corrupt log segment.",
    [
        Option(
            "files",
            "REQUIRED: the files to dump: .log, .index, .timeindex, .snapshot, .txnindex, .checkpoint.",
            "FILE,FILE,…",
        ),
        Option("print-data-log", "Show the records' keys and values. Any decoder option includes this."),
        Option("deep-iteration", "Show each record, not only each batch. --print-data-log includes this."),
        Option(
            "index-sanity-check",
            "Check an index only as the broker does at its start to find out whether it must be rebuilt.",
        ),
        Option("verify-index-only", "Compare an index with its log, without showing the entries."),
        Option("max-message-size", "The size of the largest batch, in bytes.", "BYTES", "5242880"),
        Option("max-bytes", "Read only as many bytes of each .log file.", "BYTES", str(ALL_BYTES)),
        Option("skip-record-metadata", "Show only key and value of a record; nothing of control records."),
        Option(
            "key-decoder-class",
            f"How keys are read: {CHOICES}.",
            "CLASS",
            DEFAULT_DECODER,
            value_is_optional=True,
        ),
        Option(
            "value-decoder-class",
            f"How values are read: {CHOICES}.",
            "CLASS",
            DEFAULT_DECODER,
            value_is_optional=True,
        ),
        Option("offsets-decoder", "Read records as those of __consumer_offsets."),
        Option("transaction-log-decoder", "Read records as those of __transaction_state."),
        Option("share-group-state-decoder", "Read records as those of __share_group_state."),
        Option("cluster-metadata-decoder", "Records of KRaft's __cluster_metadata: not supported."),
        Option("remote-log-metadata-decoder", "Records of __remote_log_metadata: not supported."),
    ],
    examples=[
        "kafka-dump-log --files data/orders-0/00000000000000000000.log --print-data-log",
        "kafka-dump-log --files data/orders-0/00000000000000000000.index --index-sanity-check",
    ],
)
DECODER_OPTIONS = (
    "offsets-decoder",
    "transaction-log-decoder",
    "share-group-state-decoder",
    "value-decoder-class",
    "key-decoder-class",
)


def execute(given: Options) -> int:
    given.require("files")
    for name in NOT_DECODED:
        if given.has(name):
            raise UserError(f"--{name} is not supported: such records are shown without being decoded")
    sanity_only = given.has("index-sanity-check")
    verify_only = given.has("verify-index-only")
    contents = given.has("print-data-log") or any(given.has(name) for name in DECODER_OPTIONS)
    max_message_size = given.integer("max-message-size") or 0
    findings = Findings()
    log_dump = LogDump(
        decode=_decoder(given) if contents else None,
        deep=contents or given.has("deep-iteration"),
        metadata=not given.has("skip-record-metadata"),
        max_bytes=given.integer("max-bytes") or 0,
        findings=findings,
    )
    for path in (given.value("files") or "").split(","):
        print(f"Dumping {_as_java(path)}")
        suffix = os.path.splitext("x" + os.path.basename(path))[1]
        try:
            if suffix in (".log", ".checkpoint"):
                log_dump.show(path)
            elif suffix == ".index":
                dump_offset_index(
                    path,
                    findings,
                    sanity_only=sanity_only,
                    verify_only=verify_only,
                    max_bytes=max_message_size,
                )
            elif suffix == ".timeindex":
                dump_time_index(path, findings, sanity_only=sanity_only, verify_only=verify_only)
            elif suffix == ".snapshot":
                dump_producer_snapshot(path)
            elif suffix == ".txnindex":
                dump_transaction_index(path)
            else:
                tool.complain(f"Ignoring unknown file {_as_java(path)}")
        except OSError as error:
            raise UserError(f"cannot read {error.filename or path}: {error.strerror}") from None
        except (NotABatch, InvalidRecord) as error:
            tool.complain(str(error))
            return 1
    for line in findings.lines():
        tool.complain(line)
    return 0


def _decoder(given: Options) -> Decoder:
    for name in ("offsets-decoder", "transaction-log-decoder", "share-group-state-decoder"):
        if given.has(name):
            return coordinator_decoder(name)
    return value_decoder(
        key_class=given.value("key-decoder-class") or DEFAULT_DECODER,
        value_class=given.value("value-decoder-class") or DEFAULT_DECODER,
    )


def _as_java(path: str) -> str:
    """As java.io.File says a path: no doubled and no trailing slashes."""
    while "//" in path:
        path = path.replace("//", "/")
    return path.rstrip("/") if len(path) > 1 else path


def main(argv: list[str]) -> int:
    return tool.run(TABLE, execute, argv)


if __name__ == "__main__":
    tool.leave(main(sys.argv[1:]))
