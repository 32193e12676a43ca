"""The console's lists of 10,000 topics and 10,000 groups in a real browser. The bounds are on our own figures."""

import re
import sys

from bench.context import Context
from bench.measure import MEGABYTE, Row, Sample, Scale
from bench.servers import PENSTOCK
from penstock.testing.processes import start_process

OURS = (PENSTOCK, PENSTOCK)
TIMEOUT_S = 300.0
READY_TIMEOUT_S = 60.0
READY_LINE = r"^penstock console: listening on (\S+)"


class ConsoleLists:
    name = "console-lists"
    server_names = (PENSTOCK,)
    about = "10,000 topics and 10,000 groups of one broker in the console, in Chromium: first paint, later pages, medians"
    rows = (
        Row(
            "topics_paint_ms", "list of topics, first paint", "ms", "lower", 1500, bounds="value", sides=OURS
        ),
        Row(
            "topics_page_max_ms",
            "… a later page, longest of 20",
            "ms",
            "lower",
            300,
            bounds="value",
            sides=OURS,
        ),
        Row(
            "groups_paint_ms", "list of groups, first paint", "ms", "lower", 1500, bounds="value", sides=OURS
        ),
        Row(
            "groups_page_max_ms",
            "… a later page, longest of 20",
            "ms",
            "lower",
            300,
            bounds="value",
            sides=OURS,
        ),
        Row("console_mb", "resident", "MB", "lower", None, sides=OURS),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=2, quick=0)

    def run(self, context: Context) -> Sample:
        count = context.scale.pick(full=10_000, quick=1_000)
        with context.fresh_directory() as directory:
            server = context.kind.start(directory)
            command = [sys.executable, "-m", "penstock", "console", "--port", "0", "--no-login"]
            command += ["--bootstrap-server", server.bootstrap]
            log_path = directory / "console.log"
            process = start_process(command, name="console", log_path=log_path)
            try:
                process.wait_for_line(READY_LINE, timeout_s=READY_TIMEOUT_S)
                found = re.search(READY_LINE, log_path.read_text(), re.M)
                assert found is not None
                values = context.client(
                    "console_lists", server=server, timeout_s=TIMEOUT_S, url=found[1], count=count
                )
                values["console_mb"] = process.usage().resident_bytes / MEGABYTE
            finally:
                process.stop()
                server.stop()
        return Sample(values)
