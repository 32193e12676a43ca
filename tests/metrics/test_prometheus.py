"""A real Prometheus asks a cluster and its services, and is asked every query of the dashboards and every alert.

What the dashboards draw must be there: no query names a series that nobody emits, and nearly all have a sample.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry

from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports, start_process
from tests.metrics.scraping import TIMEOUT_S, scrape, until, value
from tests.web.services import WebProcess, connect_service, registry_service, rest_service, sql_service

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BROKERS = 2
PARTITIONS = 8
GROUP = "stack"
KEYWORDS = {
    "and", "avg", "by", "changes", "count", "delta", "histogram_quantile", "increase", "max", "on", "or", "rate", "sum", "time",
    "topk", "unless",
}  # fmt: skip
OF_A_COLLECTION_IN_USE = {
    "kafka_connect_sink_task_sink_record_send_total",  # there is no sink in this stack
}


class Prometheus:
    def __init__(self, directory: Path, jobs: dict[str, list[int]]) -> None:
        directory.mkdir()
        scrapes = [
            {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]}
            for job, ports in jobs.items()
        ]
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(DEPLOY / "prometheus" / "alerts.yml")],
            "scrape_configs": scrapes,
        }
        file = directory / "prometheus.yml"
        file.write_text(json.dumps(config))  # which is YAML, too
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.process = start_process(
            [
                "prometheus", f"--config.file={file}", f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            name="Prometheus", log_path=directory / "prometheus.log",
        )  # fmt: skip
        try:
            self.process.wait_for_line("Server is ready", timeout_s=TIMEOUT_S)
        except BaseException:
            self.process.kill()
            raise

    def ask(self, path: str, **words: str) -> Any:
        query = urllib.parse.urlencode(words)
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=TIMEOUT_S) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{words}: {error.read().decode()}") from None
        assert found["status"] == "success", found
        return found["data"]

    def samples(self, query: str) -> list[Any]:
        found: list[Any] = self.ask("query", query=query)["result"]
        return found

    def close(self) -> None:
        self.process.stop()


def services(stack: ExitStack, directory: Path, bootstrap: str) -> dict[str, list[int]]:
    ports = {}
    for name, start in (
        ("registry", registry_service),
        ("rest", rest_service),
        ("connect", connect_service),
        ("sql", sql_service),
    ):
        running: WebProcess = start(directory / name, {}, bootstrap)
        stack.callback(running.close)
        running.ask("GET", "/")
        if name == "connect":
            (directory / "lines").write_text("one\ntwo\n")
            config = {
                "connector.class": "FileStreamSource", "file": str(directory / "lines"), "topic": "lines", "tasks.max": "1",
            }  # fmt: skip
            assert (
                running.ask(
                    "PUT", "/connectors/lines/config", config, {"Content-Type": "application/json"}
                ).status
                < 300
            )
            until(
                lambda: "kafka_connect_source_task_source_record_poll_total" in scrape(running.port),  # noqa: B023
                "the task's numbers",
            )
        ports[f"penstock-{name}"] = [running.port]
    return ports


def pipeline(stack: ExitStack) -> int:
    """The page of a Spark query; the query itself needs no Spark to be told of."""
    from types import SimpleNamespace

    from penstock.spark.watching.progress import ProgressListener

    listener = ProgressListener(0, registry=CollectorRegistry(), show_line=False)
    stack.callback(listener.close)
    offsets = {"topic": {"0": 5}}
    event: Any = SimpleNamespace(
        progress=SimpleNamespace(
            json=json.dumps(
                {
                    "id": "5f0b", "name": "counts", "batchId": 3, "numInputRows": 10, "processedRowsPerSecond": 5.0,
                    "batchDuration": 200, "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
                    "sources": [{"endOffset": offsets, "latestOffset": {"topic": {"0": 9}}}],
                }
            )
        )
    )  # fmt: skip
    listener.onQueryProgress(event)
    assert listener.port is not None
    return listener.port


@pytest.fixture(scope="module")
def metrics_ports() -> list[int]:
    return free_ports(BROKERS)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory, metrics_ports: list[int]) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack:
        own = {
            number: {"penstock.metrics.listener": f"127.0.0.1:{port}"}
            for number, port in enumerate(metrics_ports, 1)
        }
        options = {
            "num.partitions": str(PARTITIONS), "group.initial.rebalance.delay.ms": "0", "default.replication.factor": "2",
            "offsets.topic.num.partitions": "8", "offsets.topic.replication.factor": "2",
        }  # fmt: skip
        cluster = stack.enter_context(
            PenstockCluster(directory / "cluster", brokers=BROKERS, options=options, options_of=own)
        )
        ports = services(stack, directory, cluster.bootstrap)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(100 * PARTITIONS):
            producer.produce("orders", b"value", partition=number % PARTITIONS)
        assert producer.flush(TIMEOUT_S) == 0
        commit_all(cluster, GROUP)
        running = Prometheus(
            directory / "own",
            {"penstock-broker": metrics_ports, "penstock-spark": [pipeline(stack)], **ports},
        )
        stack.callback(running.close)
        until(
            lambda: (
                running.samples("rate(penstock_registry_http_requests_total[30s])")
                and len(running.samples("rate(process_cpu_seconds_total[30s])")) >= BROKERS + len(ports)
            ),
            "two looks at each",
        )
        yield running


def commit_all(cluster: PenstockCluster, group: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    places = [TopicPartition("orders", index, 10 * index) for index in range(PARTITIONS)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def filled(query: str) -> str:
    query = query.replace("$__rate_interval", "30s")
    return re.sub(r"\$(instance|topic|group)", ".*", query)


def dashboard_queries() -> dict[str, str]:
    """By where they are."""
    found = {}
    for file in sorted((DEPLOY / "grafana").glob("*.json")):
        document = json.loads(file.read_text())
        for panel in document["panels"]:
            for target in panel.get("targets", ()):
                found[f"{file.stem}: {panel['title']} {target['refId']}"] = filled(target["expr"])
    return found


def alert_queries(prometheus: Prometheus) -> dict[str, str]:
    return {
        rule["name"]: rule["query"] for group in prometheus.ask("rules")["groups"] for rule in group["rules"]
    }


def series_in(query: str) -> set[str]:
    """The names of metrics that a query asks for: words that stand before a selector, a bracket or an operator."""
    bare = re.sub(r'"[^"]*"', '""', query)
    bare = re.sub(r"\{[^}]*\}", "", bare)
    bare = re.sub(r"\b(by|on|without|ignoring)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    return {word for word in re.findall(r"[a-z_][a-z0-9_]*", bare) if word not in KEYWORDS}


def test_every_query_of_the_dashboards_names_what_is_there(prometheus: Prometheus) -> None:
    known = set(prometheus.ask("label/__name__/values"))
    queries = dashboard_queries()
    assert len(queries) > 80
    unknown = {
        (place, name)
        for place, query in queries.items()
        for name in series_in(query) - known - OF_A_COLLECTION_IN_USE
    }
    assert not unknown
    empty = sorted(place for place, query in queries.items() if not prometheus.samples(query))
    assert len(empty) <= len(queries) * 0.12, empty
    print("without a sample:", *empty, sep="\n  ")


def test_every_alert_is_understood_and_none_is_raised_by_a_stack_that_is_well(prometheus: Prometheus) -> None:
    known = set(prometheus.ask("label/__name__/values"))
    alerts = alert_queries(prometheus)
    assert len(alerts) >= 20
    unknown = {(name, series) for name, query in alerts.items() for series in series_in(query) - known}
    assert not unknown
    for query in alerts.values():
        prometheus.samples(query)  # an error if it is none
    until(
        lambda: all(
            rule["health"] == "ok" for group in prometheus.ask("rules")["groups"] for rule in group["rules"]
        ),
        "all rules were looked at",
    )
    firing = [alert for alert in prometheus.ask("alerts")["alerts"] if alert["state"] == "firing"]
    assert not firing


def test_the_lag_of_partitions_that_other_brokers_lead_is_known(
    prometheus: Prometheus, metrics_ports: list[int]
) -> None:
    """The group is on one broker's page only, and its partitions are led by both."""
    pages = [scrape(port) for port in metrics_ports]
    mine = [
        {labels["partition"]: number for labels, number in page.get("kafka_consumergroup_lag", ())
         if labels["consumergroup"] == GROUP}
        for page in pages
    ]  # fmt: skip
    assert sorted(map(len, mine)) == [0, PARTITIONS]
    (lags,) = filter(None, mine)
    assert lags == {str(index): 100 - 10 * index for index in range(PARTITIONS)}
    leaders = {number for page in pages for labels, number in page["kafka_topic_partition_leader"]
               if labels["topic"] == "orders"}  # fmt: skip
    assert leaders == {1, 2}
    total = prometheus.samples(f'sum(kafka_consumergroup_lag{{consumergroup="{GROUP}"}})')
    assert float(total[0]["value"][1]) == sum(lags.values())
    assert [value(page, "kafka_brokers") for page in pages].count(BROKERS) == 1


def promtool(*words: str, folder: Path = DEPLOY / "prometheus") -> str:
    done = subprocess.run(["promtool", *words], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_finds_nothing_wrong_with_the_files() -> None:
    assert "SUCCESS" in promtool("check", "rules", "alerts.yml")
    assert "SUCCESS" in promtool("check", "config", "prometheus.yml")
    assert "SUCCESS" in promtool("test", "rules", "alerts.test.yml")


def test_promtool_finds_nothing_wrong_with_a_brokers_page(
    prometheus: Prometheus, metrics_ports: list[int]
) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_ports[0]}/metrics", timeout=TIMEOUT_S) as answer:
        page = answer.read()
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, timeout=TIMEOUT_S
    )
    assert b"error while linting" not in done.stderr, done.stderr.decode()


def test_the_dashboards_are_what_the_script_makes() -> None:
    import runpy

    script = runpy.run_path(str(ROOT / "scripts" / "generate_dashboards.py"))
    for dashboard in script["DASHBOARDS"]:
        file = DEPLOY / "grafana" / f"{dashboard.name}.json"
        assert file.read_text(encoding="utf-8") == script["text_of"](dashboard), f"{file.name} is old"
