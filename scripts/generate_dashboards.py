# ruff: noqa: E501 -- queries stay in one line
"""Writes the dashboards for Grafana: `python scripts/generate_dashboards.py` makes deploy/grafana/*.json from the tables below.

A panel is a title, a unit and queries; a row is a title and its panels. `tests/metrics` asks a real Prometheus each query.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

FOLDER: Final = Path(__file__).resolve().parents[1] / "deploy" / "grafana"
SCHEMA_VERSION: Final = 39
WIDTH: Final = 24
HEIGHT: Final = 8


class Panel(NamedTuple):
    title: str
    unit: str
    queries: dict[str, str]
    """By the legend."""
    kind: str = "timeseries"
    width: int = 8


class Dashboard(NamedTuple):
    name: str
    title: str
    rows: dict[str, list[Panel]]
    variables: tuple[tuple[str, str], ...] = ()
    """Each with the query of its values."""


BROKERS: Final = Dashboard(
    "brokers",
    "Penstock brokers",
    {
        "Health": [
            Panel("Brokers", "none", {"": "max(kafka_brokers)"}, "stat", 4),
            Panel("Controllers", "none", {"": "sum(kafka_controller_kafkacontroller_activecontrollercount)"}, "stat", 4),
            Panel("Under-replicated partitions", "none",
                  {"": "sum(kafka_server_replicamanager_underreplicatedpartitions)"}, "stat", 4),
            Panel("Under min ISR", "none",
                  {"": "sum(kafka_server_replicamanager_underminisrpartitioncount)"}, "stat", 4),
            Panel("Offline partitions", "none",
                  {"": "max(kafka_controller_kafkacontroller_offlinepartitionscount)"}, "stat", 4),
            Panel("Failed log directories", "none",
                  {"": "sum(kafka_log_logmanager_offlinelogdirectorycount)"}, "stat", 4),
        ],
        "Traffic": [
            Panel("Bytes in", "Bps", {
                "{{instance}}": 'rate(kafka_server_brokertopicmetrics_bytesin_total{topic="",instance=~"$instance"}[$__rate_interval])'}),
            Panel("Bytes out", "Bps", {
                "{{instance}}": 'rate(kafka_server_brokertopicmetrics_bytesout_total{topic="",instance=~"$instance"}[$__rate_interval])'}),
            Panel("Records in", "cps", {
                "{{instance}}": 'rate(kafka_server_brokertopicmetrics_messagesin_total{topic="",instance=~"$instance"}[$__rate_interval])'}),
            Panel("Replication", "Bps", {
                "{{instance}} in": 'rate(kafka_server_brokertopicmetrics_replicationbytesin_total{topic="",instance=~"$instance"}[$__rate_interval])',
                "{{instance}} out": 'rate(kafka_server_brokertopicmetrics_replicationbytesout_total{topic="",instance=~"$instance"}[$__rate_interval])'}),
            Panel("Failed requests", "cps", {
                "produce": 'sum(rate(kafka_server_brokertopicmetrics_failedproducerequests_total{topic="",instance=~"$instance"}[$__rate_interval]))',
                "fetch": 'sum(rate(kafka_server_brokertopicmetrics_failedfetchrequests_total{topic="",instance=~"$instance"}[$__rate_interval]))'}),
            Panel("In-sync sets", "cps", {
                "shrinks": 'sum(rate(kafka_server_replicamanager_isrshrinks_total{instance=~"$instance"}[$__rate_interval]))',
                "expands": 'sum(rate(kafka_server_replicamanager_isrexpands_total{instance=~"$instance"}[$__rate_interval]))',
                "unclean elections": 'sum(rate(kafka_controller_controllerstats_uncleanleaderelections_total{instance=~"$instance"}[$__rate_interval]))'}),
        ],
        "Requests": [
            Panel("Requests", "reqps", {
                "{{request}}": 'sum by (request) (rate(kafka_network_requestmetrics_requests_total{instance=~"$instance"}[$__rate_interval]))'}),
            Panel("Errors", "reqps", {
                "{{request}} {{error}}": 'sum by (request, error) (rate(kafka_network_requestmetrics_errors_total{instance=~"$instance"}[$__rate_interval]))'}),
            Panel("Produce, time", "ms", {
                "{{quantile}}": 'max by (quantile) (kafka_network_requestmetrics_totaltimems{request="Produce",instance=~"$instance"})'}),
            Panel("Time of requests, p99", "ms", {
                "{{request}}": 'max by (request) (kafka_network_requestmetrics_totaltimems{quantile="0.99",instance=~"$instance"})'}),
            Panel("Where the time of Produce goes, p99", "ms", {
                "queue": 'max(kafka_network_requestmetrics_requestqueuetimems{request="Produce",quantile="0.99",instance=~"$instance"})',
                "local": 'max(kafka_network_requestmetrics_localtimems{request="Produce",quantile="0.99",instance=~"$instance"})',
                "remote": 'max(kafka_network_requestmetrics_remotetimems{request="Produce",quantile="0.99",instance=~"$instance"})',
                "reply waits": 'max(kafka_network_requestmetrics_responsequeuetimems{request="Produce",quantile="0.99",instance=~"$instance"})',
                "reply is sent": 'max(kafka_network_requestmetrics_responsesendtimems{request="Produce",quantile="0.99",instance=~"$instance"})'}),
            Panel("Size of requests, p99", "bytes", {
                "{{request}}": 'max by (request) (kafka_network_requestmetrics_requestbytes{quantile="0.99",instance=~"$instance"})'}),
            Panel("Throttled, p99", "ms", {
                "{{request}}": 'max by (request) (kafka_network_requestmetrics_throttletimems{quantile="0.99",instance=~"$instance"})'}),
            Panel("Waiting", "none", {
                "{{delayedOperation}}": 'sum by (delayedOperation) (kafka_server_delayedoperationpurgatory_numdelayedoperations{instance=~"$instance"})',
                "requests": 'sum(kafka_network_requestchannel_requestqueuesize{instance=~"$instance"})',
                "replies": 'sum(kafka_network_requestchannel_responsequeuesize{instance=~"$instance"})'}),
            Panel("Fetch sessions", "none", {
                "{{instance}}": 'kafka_server_fetchsessioncache_numincrementalfetchsessions{instance=~"$instance"}'}),
        ],
        "Process": [
            Panel("Idle", "percentunit", {
                "{{instance}}": 'kafka_network_socketserver_networkprocessoravgidle_percent{instance=~"$instance"}'}),
            Panel("Event loop, p99 of its lag", "s", {
                "{{instance}}": 'histogram_quantile(0.99, sum by (instance, le) (rate(penstock_event_loop_lag_seconds_bucket{instance=~"$instance"}[$__rate_interval])))'}),
            Panel("CPU", "percentunit", {
                "{{instance}}": 'rate(process_cpu_seconds_total{instance=~"$instance"}[$__rate_interval])'}),
            Panel("Memory", "bytes", {"{{instance}}": 'process_resident_memory_bytes{instance=~"$instance"}'}),
            Panel("Open files", "none", {"{{instance}}": 'process_open_fds{instance=~"$instance"}'}),
            Panel("Disk", "Bps", {
                "{{instance}} read": 'rate(kafka_server_kafkaserver_linux_disk_read_bytes{instance=~"$instance"}[$__rate_interval])',
                "{{instance}} written": 'rate(kafka_server_kafkaserver_linux_disk_write_bytes{instance=~"$instance"}[$__rate_interval])'}),
            Panel("Connections", "none", {
                "{{instance}} {{listener}}": 'kafka_server_socket_server_metrics_connection_count{instance=~"$instance"}'}),
            Panel("New connections", "cps", {
                "{{instance}} {{listener}}": 'kafka_server_socket_server_metrics_connection_creation_rate{instance=~"$instance"}'}),
            Panel("Flushes of logs, p99", "ms", {
                "{{instance}}": 'kafka_log_logflushstats_logflushrateandtimems{quantile="0.99",instance=~"$instance"}'}),
        ],
    },
    (("instance", "label_values(kafka_server_kafkaserver_brokerstate, instance)"),),
)  # fmt: skip

TOPICS: Final = Dashboard(
    "topics",
    "Penstock topics",
    {
        "Topics": [
            Panel("Records in", "cps", {
                "{{topic}}": 'sum by (topic) (rate(kafka_server_brokertopicmetrics_messagesin_total{topic=~"$topic",topic!=""}[$__rate_interval]))'}),
            Panel("Bytes in", "Bps", {
                "{{topic}}": 'sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesin_total{topic=~"$topic",topic!=""}[$__rate_interval]))'}),
            Panel("Bytes out", "Bps", {
                "{{topic}}": 'sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesout_total{topic=~"$topic",topic!=""}[$__rate_interval]))'}),
            Panel("Size on all brokers", "bytes", {"{{topic}}": 'sum by (topic) (kafka_log_log_size{topic=~"$topic"})'}),
            Panel("Records in the logs", "none", {
                "{{topic}}": 'sum by (topic) (kafka_topic_partition_current_offset{topic=~"$topic"} - kafka_topic_partition_oldest_offset{topic=~"$topic"})'}),
            Panel("Partitions", "none", {"{{topic}}": 'max by (topic) (kafka_topic_partitions{topic=~"$topic"})'}),
            Panel("Refused batches", "cps", {
                "{{topic}}": 'sum by (topic) (rate(kafka_server_brokertopicmetrics_failedproducerequests_total{topic=~"$topic",topic!=""}[$__rate_interval]))'}),
            Panel("Under-replicated partitions", "none", {
                "{{topic}}": 'sum by (topic) (kafka_topic_partition_under_replicated_partition{topic=~"$topic"})'}),
            Panel("Not led by the preferred replica", "none", {
                "{{topic}}": 'count by (topic) (kafka_topic_partition_leader_is_preferred{topic=~"$topic"} == 0) or sum by (topic) (0 * kafka_topic_partition_leader{topic=~"$topic"})'}),
        ],
        "Partitions": [
            Panel("Skew: largest partition to the mean", "none", {
                "{{topic}}": 'max by (topic) (kafka_log_log_size{topic=~"$topic"}) / avg by (topic) (kafka_log_log_size{topic=~"$topic"} > 0)'}),
            Panel("Open transactions: offsets behind the high watermark", "none", {
                "{{topic}}": 'max by (topic) (kafka_cluster_partition_laststableoffsetlag{topic=~"$topic"})'}),
            Panel("Segments", "none", {"{{topic}}": 'sum by (topic) (kafka_log_log_numlogsegments{topic=~"$topic"})'}),
        ],
    },
    (("topic", "label_values(kafka_log_log_size, topic)"),),
)  # fmt: skip

GROUPS: Final = Dashboard(
    "groups",
    "Penstock consumer groups",
    {
        "Lag": [
            Panel("Lag in records", "none", {
                "{{consumergroup}}": 'sum by (consumergroup) (kafka_consumergroup_lag{consumergroup=~"$group"})'}, width=12),
            Panel("Lag in time", "s", {
                "{{group}}": 'max by (group) (kafka_consumergroup_group_max_lag_seconds{group=~"$group"})'}, width=12),
            Panel("Lag by topic", "none", {
                "{{consumergroup}} {{topic}}": 'sum by (consumergroup, topic) (kafka_consumergroup_lag_sum{consumergroup=~"$group"})'}),
            Panel("Partitions that lag most", "none", {
                "{{group}} {{topic}}-{{partition}}": 'topk(10, kafka_consumergroup_group_lag{group=~"$group"})'}),
            Panel("Partitions that lag longest", "s", {
                "{{group}} {{topic}}-{{partition}}": 'topk(10, kafka_consumergroup_group_lag_seconds{group=~"$group"})'}),
        ],
        "Groups": [
            Panel("Committed", "cps", {
                "{{consumergroup}} {{topic}}": 'sum by (consumergroup, topic) (rate(kafka_consumergroup_current_offset{consumergroup=~"$group"}[$__rate_interval]))'}),
            Panel("Members", "none", {
                "{{consumergroup}}": 'sum by (consumergroup) (kafka_consumergroup_members{consumergroup=~"$group"})'}),
            Panel("Groups by state", "none", {
                "stable": "sum(kafka_coordinator_group_groupmetadatamanager_numgroupsstable)",
                "empty": "sum(kafka_coordinator_group_groupmetadatamanager_numgroupsempty)",
                "preparing": "sum(kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance)",
                "completing": "sum(kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance)",
                "dead": "sum(kafka_coordinator_group_groupmetadatamanager_numgroupsdead)"}),
            Panel("Groups without anybody, with lag", "none", {
                "{{consumergroup}}": 'sum by (consumergroup) (kafka_consumergroup_lag{consumergroup=~"$group"}) and on (consumergroup) (sum by (consumergroup) (kafka_consumergroup_members) == 0)'}),
            Panel("Groups left out of the metrics", "none", {"": "sum(penstock_metrics_left_out_groups)"}, "stat"),
        ],
    },
    (("group", "label_values(kafka_consumergroup_members, consumergroup)"),),
)  # fmt: skip


def _service_panels(service: str) -> list[Panel]:
    name = f"penstock_{service}_http"
    return [
        Panel("Requests", "reqps", {
            "{{status}}": f"sum by (status) (rate({name}_requests_total[$__rate_interval]))"}),
        Panel("Time, p99", "s", {
            "{{path}}": f"histogram_quantile(0.99, sum by (path, le) (rate({name}_request_seconds_bucket[$__rate_interval])))"}),
        Panel("Being served", "none", {"{{instance}}": f"{name}_requests_in_flight"}),
    ]  # fmt: skip


SERVICES: Final = Dashboard(
    "services",
    "Penstock services",
    {
        "Schema registry": [
            *_service_panels("registry"),
            Panel("Subjects", "none", {"": "max(penstock_registry_subjects)"}, "stat"),
            Panel("Schemas", "none", {"": "max(penstock_registry_schemas)"}, "stat"),
            Panel("Leaders", "none", {"": "sum(penstock_registry_leads)"}, "stat"),
        ],
        "REST proxy": _service_panels("rest"),
        "Connect": [
            *_service_panels("connect"),
            Panel("Connectors", "none", {
                "{{status}}": "count by (status) (max by (connector, status) (kafka_connect_connector_status))"}),
            Panel("Tasks", "none", {
                "running": "sum(max by (connector) (kafka_connect_worker_connector_running_task_count))",
                "failed": "sum(max by (connector) (kafka_connect_worker_connector_failed_task_count))",
                "paused": "sum(max by (connector) (kafka_connect_worker_connector_paused_task_count))",
                "unassigned": "sum(max by (connector) (kafka_connect_worker_connector_unassigned_task_count))"}),
            Panel("Records", "cps", {
                "{{connector}} read": "sum by (connector) (rate(kafka_connect_source_task_source_record_poll_total[$__rate_interval]))",
                "{{connector}} written": "sum by (connector) (rate(kafka_connect_sink_task_sink_record_send_total[$__rate_interval]))"}),
            Panel("Failures of records", "cps", {
                "{{connector}}": "sum by (connector) (rate(kafka_connect_task_error_total_record_failures[$__rate_interval]))"}),
            Panel("Dead letters", "cps", {
                "{{connector}}": "sum by (connector) (rate(kafka_connect_task_error_deadletterqueue_produce_requests[$__rate_interval]))"}),
        ],
        "SQL": [
            *_service_panels("sql_server"),
            Panel("Queries", "none", {"{{state}}": "sum by (state) (penstock_sql_queries)"}),
        ],
        "Processes": [
            Panel("CPU", "percentunit", {
                "{{job}} {{instance}}": "rate(process_cpu_seconds_total[$__rate_interval])"}),
            Panel("Memory", "bytes", {"{{job}} {{instance}}": "process_resident_memory_bytes"}),
            Panel("Open files", "none", {"{{job}} {{instance}}": "process_open_fds"}),
        ],
    },
)  # fmt: skip

SPARK: Final = Dashboard(
    "spark",
    "Penstock pipelines on Spark",
    {
        "Queries": [
            Panel("Rows", "cps", {"{{query}}": "sum by (query) (rate(penstock_spark_rows_total[$__rate_interval]))"}),
            Panel("Rows that a batch processes each second", "cps", {"{{query}}": "penstock_spark_rows_per_second"}),
            Panel("Time of a batch", "s", {"{{query}}": "penstock_spark_batch_duration_seconds"}),
            Panel("Lag", "none", {"{{query}}": "penstock_spark_lag"}),
            Panel("Watermark, behind now", "s", {"{{query}}": "time() - penstock_spark_watermark_timestamp_seconds"}),
            Panel("Batches", "none", {"{{query}}": "penstock_spark_batch_id"}),
        ],
    },
)  # fmt: skip

DASHBOARDS: Final = (BROKERS, TOPICS, GROUPS, SERVICES, SPARK)
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def made(dashboard: Dashboard) -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in dashboard.rows.items():
        panels.append({"type": "row", "title": title, "collapsed": False, "id": len(panels) + 1, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}})  # fmt: skip
        y += 1
        x = height = 0
        for panel in row:
            if x + panel.width > WIDTH:
                x, y = 0, y + height
            height = HEIGHT // 2 if panel.kind == "stat" else HEIGHT
            panels.append(_panel(panel, len(panels) + 1, {"x": x, "y": y, "w": panel.width, "h": height}))
            x += panel.width
        y += height
    return {
        "uid": f"penstock-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["penstock", "kafka"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables(dashboard)},
        "annotations": {"list": []},
        "panels": panels,
    }


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": _SOURCE,
            "expr": query,
            "legendFormat": legend or "__auto",
        }
        for index, (legend, query) in enumerate(panel.queries.items())
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": {} if panel.kind == "stat" else {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": targets,
    }


def _variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return [source] + [
        {
            "name": name, "type": "query", "query": {"query": query, "refId": name}, "datasource": _SOURCE,
            "multi": True, "includeAll": True, "allValue": ".*", "refresh": 2, "sort": 1,
            "current": {"text": "All", "value": "$__all"},
        }
        for name, query in dashboard.variables
    ]  # fmt: skip


def text_of(dashboard: Dashboard) -> str:
    return json.dumps(made(dashboard), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        (FOLDER / f"{dashboard.name}.json").write_text(text_of(dashboard), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
