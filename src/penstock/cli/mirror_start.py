"""The flows of an mm2.properties are started: by `penstock mirror` and by Kafka's connect-mirror-maker."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from penstock.cli.http_services import configure_logs, extra, tell_warnings
from penstock.client.errors import UserError
from penstock.client.property_files import read_properties

if TYPE_CHECKING:
    from penstock.mirror.flows import Flow
    from penstock.mirror.running import Mirror

FIRST_S = 2.0
STATUS_S = 30.0
MIN_LOOK_S = 3600.0


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Set by SIGINT and SIGTERM."""
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(
    path: str,
    targets: Sequence[str],
    pairs: Mapping[str, str],
    status_s: float,
    *,
    metrics_port: int | None = None,
) -> int:
    """Until it is stopped; every `status_s` seconds each flow is told in a line, never where that is 0."""
    with extra("connect", command="mirror"):
        from penstock.mirror.flows import read_flows, warnings_of
        from penstock.mirror.numbers import serve
        from penstock.mirror.running import Mirror as _Mirror
    given = read_properties(path) | dict(pairs)
    made = _Mirror(read_flows(given, targets))
    configure_logs()
    tell_warnings(warnings_of(given))
    if metrics_port is not None:
        _serve_metrics(made, metrics_port, serve)
    logging.getLogger("penstock.connect.client").setLevel(logging.WARNING)
    with stop_event() as stopped:
        try:
            made.start(stopped.is_set)
            flows = ", ".join(str(one) for one in made.flows if one.is_enabled)
            print(f"penstock mirror: running {flows}", flush=True)
            pause_s = min(FIRST_S, status_s)
            while not stopped.wait(pause_s or MIN_LOOK_S):
                pause_s = status_s
                if status_s:
                    for state in made.states():
                        print(state.line(), flush=True)
            print("penstock mirror: stopping", file=sys.stderr, flush=True)
        finally:
            made.stop()
    return 0


def _serve_metrics(made: Mirror, port: int, serve: Callable[[Sequence[Flow], int], int]) -> None:
    try:
        served = serve(made.flows, port)
    except OSError as error:
        raise UserError(
            f"cannot serve metrics on port {port}: {error.strerror}; choose another with --metrics-port"
        ) from None
    print(f"penstock mirror: metrics on http://0.0.0.0:{served}/metrics", flush=True)
