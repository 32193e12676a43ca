"""From the creation of the server's process to its first acknowledged record, on an empty directory."""

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.raw import wait_for_first_ack
from bench.workloads.form import STORING_SERVERS

TIMEOUT_S = 60.0


class StartToFirstAck:
    name = "start"
    about = (
        "process created → topic created on demand → one record acknowledged (raw socket, retried each ms)"
    )
    server_names = STORING_SERVERS
    rows = (Row("seconds", "start to first acknowledged record", "s", "lower", 0.15, "start"),)

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=5, quick=3)

    def run(self, context: Context) -> Sample:
        context.settle()
        with context.fresh_directory() as directory:
            # Apache Kafka's storage is formatted in here too, but before its process starts: not counted.
            server = context.kind.start_without_waiting(directory)
            try:
                acknowledged_at = wait_for_first_ack("127.0.0.1", server.port, "first", timeout_s=TIMEOUT_S)
                seconds = acknowledged_at - server.process.started_at
                cpu_seconds = server.usage().cpu_seconds
            finally:
                server.stop()
        return Sample({"seconds": seconds}, {"seconds": cpu_seconds})
