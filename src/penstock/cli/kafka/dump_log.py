"""kafka-dump-log: what is in the files of a log, and whether they fit together."""

from penstock.cli.kafka import tool
from penstock.cli.kafka.options import Option, Options, OptionTable
from penstock.client.errors import UserError
from penstock.inspection.dump.decoders import CHOICES, Decoder, coordinator_decoder, value_decoder
from penstock.inspection.dump.files import MAX_BATCH_BYTES, DumpOptions, UnknownFile, dump
from penstock.inspection.dump.indexes import Findings
from penstock.inspection.dump.log_bytes import NotABatch
from penstock.inspection.dump.log_file import ALL_BYTES
from penstock.inspection.dump.state_files import CorruptSnapshot
from penstock.records.batch import InvalidRecord

DEFAULT_DECODER = "org.apache.kafka.tools.api.StringDecoder"
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
        Option("max-message-size", "The size of the largest batch, in bytes.", "BYTES", str(MAX_BATCH_BYTES)),
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
    client_options=(),
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
    contents = given.has("print-data-log") or any(given.has(name) for name in DECODER_OPTIONS)
    options = DumpOptions(
        decode=_decoder(given) if contents else None,
        deep=given.has("deep-iteration"),
        metadata=not given.has("skip-record-metadata"),
        max_bytes=given.integer("max-bytes") or 0,
        sanity_only=given.has("index-sanity-check"),
        verify_only=given.has("verify-index-only"),
        max_batch_bytes=given.integer("max-message-size") or 0,
    )
    findings = Findings()
    for path in (given.value("files") or "").split(","):
        print(f"Dumping {_as_java(path)}")
        try:
            for line in dump(path, options, findings):
                print(line)
        except UnknownFile:
            tool.complain(f"Ignoring unknown file {_as_java(path)}")
        except CorruptSnapshot as error:
            tool.complain(str(error))
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
