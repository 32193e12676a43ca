"""What a scraper reads, from made-up facts; a parser of Prometheus' own client reads it."""

from prometheus_client.parser import text_string_to_metric_families

from penstock.broker.metrics.client_metrics import ClientMetricsFacts
from penstock.broker.metrics.facts import BrokerFacts, ClusterFacts, PartitionFacts
from penstock.broker.metrics.page import make_page
from penstock.broker.upkeep.cleaner_status import CleanerStatus
from penstock.metadata.session_state import SessionState
from penstock.runtime.loop_lag import LagCounts, Lags
from penstock.telemetry.otlp import Attributes, Kind
from penstock.telemetry.reports import ClientReport, Series


def partition(topic: str, index: int, **changes: object) -> PartitionFacts:
    facts = PartitionFacts(
        topic=topic, partition=str(index), directory="/data", size_bytes=1000, start_offset=5, end_offset=25, segments=2,
        last_stable_offset_lag=3, producers=2, is_leader=True, replicas=3, in_sync=3, min_in_sync=2, cleaner=None,
        is_damaged=False,
    )  # fmt: skip
    return facts._replace(**changes)  # type: ignore[arg-type]


NOTHING_PUSHED = ClientMetricsFacts(
    instances=2, throttled=1, unknown_subscriptions=0, received=3, refused=0, dropped_series=4, reports=[]
)


def samples(
    *partitions: PartitionFacts,
    clients: ClientMetricsFacts = NOTHING_PUSHED,
    session: SessionState | None = None,
) -> dict[str, dict[tuple[str, ...], float]]:
    """name → label values in the order of their names → value"""
    facts = BrokerFacts(
        partitions=list(partitions),
        cluster=ClusterFacts(
            is_controller=True, brokers=1, topics=2, partitions=7, offline_partitions=1, imbalanced_partitions=0
        ),
        offline_replicas=1,
        reassigning=0,
        online_directories=["/data"],
        offline_directories=["/broken"],
        connections={"PLAINTEXT": 4},
        cleaner_looked_ms_ago=1500,
        cleaner_is_dead=False,
        client_metrics=clients,
        loop_lag=Lags(
            whole=LagCounts((*[0] * 4, 7, 0, 2, *[0] * 7), 0.4, 0.1),
            own=LagCounts((8, 0, 0, 0, 1, *[0] * 9), 0.02, 0.02),
        ),
        now_ms=10_000,
        strays={"/data": 3},
        throttled=[("Produce", 3, 1500)],
        session=session,
    )  # fmt: skip
    found: dict[str, dict[tuple[str, ...], float]] = {}
    names = set()
    for family in text_string_to_metric_families(make_page(facts).body.decode()):
        assert family.name not in names, f"{family.name} comes twice"
        names.add(family.name)
        assert family.documentation
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {})
            found[sample.name][labels] = sample.value
    return found


def only(found: dict[str, dict[tuple[str, ...], float]], name: str) -> float:
    (value,) = found[name].values()
    return value


def test_each_log_has_its_size_and_offsets() -> None:
    found = samples(partition("orders", 0), partition("orders", 1, end_offset=99, size_bytes=7))
    assert found["kafka_log_log_logstartoffset"] == {("0", "orders"): 5, ("1", "orders"): 5}
    assert found["kafka_log_log_logendoffset"] == {("0", "orders"): 25, ("1", "orders"): 99}
    assert found["kafka_log_log_size"] == {("0", "orders"): 1000, ("1", "orders"): 7}
    assert found["kafka_log_log_numlogsegments"][("0", "orders")] == 2
    assert found["kafka_cluster_partition_laststableoffsetlag"][("0", "orders")] == 3


def test_waits_for_quotas_are_counted() -> None:
    found = samples()
    assert found["penstock_quota_throttled_requests_total"] == {("Produce",): 3}
    assert found["penstock_quota_throttle_seconds_total"] == {("Produce",): 1.5}


def test_replicas_out_of_sync_are_counted_where_this_broker_leads() -> None:
    found = samples(
        partition("a", 0),
        partition("a", 1, in_sync=2),
        partition("a", 2, in_sync=1),
        partition("a", 3, in_sync=1, is_leader=False),
    )
    assert only(found, "kafka_server_replicamanager_partitioncount") == 4
    assert only(found, "kafka_server_replicamanager_leadercount") == 3
    assert only(found, "kafka_server_replicamanager_underreplicatedpartitions") == 2
    assert only(found, "kafka_server_replicamanager_underminisrpartitioncount") == 1
    assert only(found, "kafka_server_replicamanager_atminisrpartitioncount") == 1
    assert only(found, "kafka_server_replicamanager_produceridcount") == 8
    assert found["kafka_cluster_partition_underminisr"][("2", "a")] == 1


def test_the_cluster_and_the_directories_are_there_without_any_partition() -> None:
    found = samples()
    assert only(found, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert only(found, "kafka_controller_kafkacontroller_offlinepartitionscount") == 1
    assert only(found, "kafka_controller_kafkacontroller_globaltopiccount") == 2
    assert only(found, "kafka_controller_kafkacontroller_globalpartitioncount") == 7
    assert only(found, "kafka_log_logmanager_offlinelogdirectorycount") == 1
    assert found["kafka_log_logmanager_logdirectoryoffline"] == {("/data",): 0, ("/broken",): 1}
    assert found["kafka_server_socket_server_metrics_connection_count"] == {("PLAINTEXT", "0"): 4}
    assert only(found, "kafka_log_logcleanermanager_time_since_last_run_ms") == 1500
    assert only(found, "process_open_fds") > 0
    assert "python_gc_collections_total" in found


def test_the_cleaner_shows_its_last_runs_and_what_it_cannot_clean() -> None:
    ran = CleanerStatus()
    ran.runs, ran.last_run_ms, ran.last_seconds = 2, 4000, 1.5
    ran.bytes_read, ran.bytes_written = 1000, 250
    ran.records_kept, ran.records_removed, ran.dirty_ratio = 10, 30, 0.25
    runs_now = CleanerStatus()
    runs_now.progress, runs_now.dirty_ratio, runs_now.is_cleanable = 0.5, 0.75, True
    broken = CleanerStatus()
    broken.uncleanable_reason = "damaged"
    found = samples(
        partition("a", 0, cleaner=ran), partition("a", 1, cleaner=runs_now), partition("a", 2, cleaner=broken)
    )
    assert only(found, "kafka_log_logcleaner_cleaner_recopy_percent") == 25
    assert only(found, "kafka_log_logcleaner_max_clean_time_secs") == 1.5
    assert only(found, "kafka_log_logcleanermanager_max_dirty_percent") == 75
    assert found["kafka_log_logcleanermanager_uncleanable_partitions_count"] == {
        ("/data",): 1,
        ("/broken",): 0,
    }
    assert found["kafka_log_logcleanermanager_uncleanable_bytes"][("/data",)] == 1000
    assert found["penstock_log_cleaner_progress_ratio"] == {("1", "a"): 0.5}
    assert found["penstock_log_cleaner_runs_total"][("0", "a")] == 2
    assert found["penstock_log_cleaner_last_run_timestamp_seconds"] == {("0", "a"): 4}
    assert found["penstock_log_cleaner_last_run_records_removed"] == {("0", "a"): 30}
    assert found["penstock_log_cleaner_cleanable"][("1", "a")] == 1
    assert found["penstock_log_cleaner_uncleanable"] == {("0", "a"): 0, ("1", "a"): 0, ("2", "a"): 1}


def test_the_lag_of_the_loop_is_a_histogram() -> None:
    found = samples()
    lags = found["penstock_event_loop_lag_seconds_bucket"]
    assert (lags[("0.01",)], lags[("0.02",)], lags[("0.1",)], lags[("+Inf",)]) == (0, 7, 9, 9)
    assert only(found, "penstock_event_loop_lag_seconds_count") == 9
    assert only(found, "penstock_event_loop_lag_seconds_sum") == 0.4
    own = found["penstock_event_loop_own_lag_seconds_bucket"]
    assert (own[("0.001",)], own[("0.02",)], own[("+Inf",)]) == (8, 9, 9)


def pushed(client: str, *series: tuple[str, Kind, Attributes, float]) -> ClientReport:
    return ClientReport(client, f"id-{client}", [Series(*each, 0) for each in series])


def test_what_clients_pushed_has_their_names_and_attributes() -> None:
    attributes = (("node.id", "1"), ("client_id", "a lie"), ("__name__", "x"), ("7", "y"))
    reports = [
        pushed("a", ("org.apache.kafka.producer.sent.total", Kind.COUNTER, attributes, 5)),
        pushed("b", ("org.apache.kafka.producer.latency-avg", Kind.GAUGE, (), 0.5)),
    ]
    found = samples(clients=NOTHING_PUSHED._replace(reports=reports))
    assert found["kafka_client_producer_sent_total"] == {("y", "id-a", "a", "x", "1"): 5}
    assert found["kafka_client_producer_latency_avg"] == {("id-b", "b"): 0.5}
    assert only(found, "kafka_server_client_metrics_instance_count") == 2
    assert only(found, "penstock_client_metrics_reports_total") == 3
    assert only(found, "penstock_client_metrics_dropped_series_total") == 4


def test_a_page_stays_good_whatever_clients_push() -> None:
    reports = [
        pushed(
            "a",
            ("x.total", Kind.COUNTER, (("a.b", "1"),), 1),
            ("x_total", Kind.COUNTER, (("a_b", "1"),), 2),  # the same series once names are made plain
            ("x", Kind.COUNTER, (), 3),
            ("x.total", Kind.GAUGE, (), 4),
            ("", Kind.GAUGE, (("k", 'quote " and \\ and \n'),), float("nan")),
            ("ä\nb", Kind.GAUGE, (), float("inf")),
        )
    ]
    found = samples(clients=NOTHING_PUSHED._replace(reports=reports))
    assert found["kafka_client_x_total"] == {("1", "id-a", "a"): 2, ("id-a", "a"): 3}
    assert found["kafka_client_x_total_gauge"] == {("id-a", "a"): 4}


def test_strays_and_damaged_partitions_are_counted() -> None:
    found = samples(partition("orders", 0), partition("orders", 1, is_damaged=True))
    assert found["penstock_log_strays"] == {("/data",): 3}
    assert found["penstock_damaged_partitions"] == {(): 1}
    assert found["penstock_log_damaged"] == {("1", "orders"): 1}


def test_the_session_with_zookeeper_is_shown_where_there_is_one() -> None:
    state = "kafka_server_sessionexpirelistener_sessionstate"
    assert state not in samples()
    assert samples(session=SessionState())[state] == {("CONNECTED",): 1, ("CONNECTING",): 0}
    found = samples(session=SessionState("does not answer", disconnects=3, expirations=1))
    assert found[state] == {("CONNECTED",): 0, ("CONNECTING",): 1}
    assert only(found, "kafka_server_sessionexpirelistener_zookeeperdisconnects_total") == 3
    assert only(found, "kafka_server_sessionexpirelistener_zookeeperexpires_total") == 1


def test_what_only_rises_is_a_counter() -> None:
    found = samples()
    assert only(found, "kafka_server_client_metrics_instance_count") == 2
    assert only(found, "kafka_server_client_metrics_throttle_count_total") == 1
    assert only(found, "kafka_server_client_metrics_unknown_subscription_request_count_total") == 0
