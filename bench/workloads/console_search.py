"""The console's search through the values of a topic. Kafka has nothing to put beside it: our own figures are bounded."""

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.servers import PENSTOCK

OURS = (PENSTOCK, PENSTOCK)
TIMEOUT_S = 600.0
PARTITIONS = 6


class ConsoleSearch:
    name = "console-search"
    server_names = (PENSTOCK,)
    about = f"the console looks for one of ten million JSON values of 100 B in {PARTITIONS} partitions, on one core"
    rows = (
        Row("text", "search for a text, 1 GB of JSON", "MB/s", "higher", 150, bounds="value", sides=OURS),
        Row("text_cpu", "… CPU", "s per GB", "lower", None, sides=OURS),
        Row("pattern", "search by a regular expression", "MB/s", "higher", 150, bounds="value", sides=OURS),
        Row("pattern_cpu", "… CPU", "s per GB", "lower", None, sides=OURS),
        Row("json", "search by a JSON condition", "MB/s", "higher", 150, bounds="value", sides=OURS),
        Row("json_cpu", "… CPU", "s per GB", "lower", None, sides=OURS),
        Row("cancel_ms", "… cancelled, longest of 10", "ms", "lower", 200, bounds="value", sides=OURS),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        count = context.scale.pick(full=10_000_000, quick=1_000_000)
        topic = context.kept_topic(
            "console-search", partition_count=PARTITIONS, filler="fill_orders", record_count=count
        )
        context.settle()
        return Sample(context.client("console_search", timeout_s=TIMEOUT_S, topic=topic, record_count=count))
