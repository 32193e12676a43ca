"""Prometheus' text form, written in a thread: one family after the other, in pieces.

    # HELP kafka_log_log_size Bytes of the log.
    # TYPE kafka_log_log_size gauge
    kafka_log_log_size{topic="orders",partition="0"} 4711

prometheus-client can write it too, in ten times the time: it makes several objects of each sample. Its parser reads what is
written here in the tests, and so does Prometheus itself.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SAMPLES_AT_ONCE: Final = 256
NAP_SECONDS: Final = 0.0002
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels = Mapping[str, str] | str
"""As they are, or as `label_text` wrote them: many families share theirs."""
Row = tuple[Labels, float]


class Family(NamedTuple):
    name: str
    """Without `_total`, which the samples of a counter have."""
    documentation: str
    rows: Iterable[Row]
    kind: str = "gauge"


def one(name: str, documentation: str, value: float, kind: str = "gauge") -> Family:
    return Family(name, documentation, (("", value),), kind)


def escaped(value: str) -> str:
    return value.translate(_ESCAPES)


def label_text(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{pairs}}}"


def number_text(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


class Writer:
    """Naps now and then, for otherwise the loop's thread waits for each turn that it asks for."""

    def __init__(self, spelled: "Spelling") -> None:
        self._spelled = spelled
        self._written = 0

    def write(self, families: Iterable[Family]) -> Iterator[str]:
        for family in families:
            name, kind = self._spelled(family)
            documentation = family.documentation.replace("\\", r"\\").replace("\n", r"\n")
            yield f"# HELP {name} {documentation}\n# TYPE {name} {kind}\n"
            for labels, value in family.rows:
                text = labels if isinstance(labels, str) else label_text(labels)
                yield f"{name}{text} {number_text(value)}\n"
                self._written += 1
                if self._written % SAMPLES_AT_ONCE == 0:
                    time.sleep(NAP_SECONDS)


class Spelling:
    """The name that a family's samples have, and its type."""

    def __call__(self, family: Family) -> tuple[str, str]:
        return (f"{family.name}_total" if family.kind == "counter" else family.name), family.kind


_IDLE_HANDLERS: Final = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle"
_IDLE_PROCESSORS: Final = "kafka_network_socketserver_networkprocessoravgidle"
CONFLUENT_NAMES: Final = {
    f"{_IDLE_PROCESSORS}_percent": f"{_IDLE_PROCESSORS}percent",
    f"{_IDLE_HANDLERS}_percent": f"{_IDLE_HANDLERS}percent_oneminuterate",
}
METERS: Final = (
    "kafka_server_brokertopicmetrics_",
    "kafka_server_replicamanager_",
    "kafka_server_fetchsessioncache_",
    "kafka_controller_controllerstats_",
    "kafka_network_requestmetrics_",
    "kafka_server_sessionexpirelistener_",
)
"""Families whose counters are Kafka's meters, called …PerSec."""


class ConfluentSpelling(Spelling):
    """As in Confluent's dashboards, which keep the …PerSec and …Percent of Kafka's names. What is not from Kafka stays."""

    def __call__(self, family: Family) -> tuple[str, str]:
        name = family.name
        if family.kind == "counter" and name.startswith(METERS):
            return f"{name}persec", "untyped"  # a counter's name would have to end with _total
        if name.startswith("kafka_server_socket_server_metrics_"):
            family = family._replace(name=name.replace("socket_server_metrics", "socketservermetrics"))
        elif name in CONFLUENT_NAMES:
            family = family._replace(name=CONFLUENT_NAMES[name])
        return super().__call__(family)


SPELLINGS: Final[dict[str, Spelling]] = {"strimzi": Spelling(), "confluent": ConfluentSpelling()}
