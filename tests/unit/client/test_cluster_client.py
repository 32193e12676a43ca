"""Questions to a cluster of which a broker, or the controller itself, has just died."""

import json
from pathlib import Path

import pytest

from penstock.admin.configs import TOPIC, Change, alter_configs
from penstock.admin.elections import elect_leaders
from penstock.admin.health import examine
from penstock.admin.moves import cluster as requests
from penstock.admin.moves.model import Replica
from penstock.cli.kafka import reassign_partitions, tool
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Unreachable
from penstock.metadata.image import PartitionRegistration
from tests.unit.admin.answering_cluster import AnsweringCluster

AT_REST = PartitionRegistration((1, 2), (1, 2), 1)
SESSION_TIMEOUT_S = 18.0


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> AnsweringCluster:
    made = AnsweringCluster(AT_REST)
    made.install(monkeypatch)
    return made


def elect_another_after_a_session(cluster: AnsweringCluster) -> None:
    if cluster.now_s > SESSION_TIMEOUT_S:
        cluster.lose(1)
        cluster.image.set_controller(2, epoch=5)


def test_the_next_controller_is_waited_for(
    cluster: AnsweringCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with ClusterClient(Connection("host-1:1")) as client:
        assert requests.ongoing(client) == {}
        cluster.dead.add(1)
        cluster.while_asleep = lambda: elect_another_after_a_session(cluster)
        assert requests.ongoing(client) == {}
        assert elect_leaders(client, 0, None) == {}
    said = caplog.messages
    assert len(said) == 1
    assert said[0].startswith("waiting for a controller that answers: cannot reach the broker at host-1:1")


def test_a_controller_that_stays_away_is_an_error(cluster: AnsweringCluster) -> None:
    cluster.dead.add(1)
    with ClusterClient(Connection("host-1:1")) as client:
        with pytest.raises(Unreachable, match=r"cannot reach the broker at host-1:1 \(broker 1, the contr"):
            requests.ongoing(client)
        assert cluster.now_s > SESSION_TIMEOUT_S
        before_s = cluster.now_s
        with pytest.raises(Unreachable):
            requests.ongoing(client, patience_s=0)
    assert cluster.now_s == before_s


def test_health_is_told_without_a_controller(cluster: AnsweringCluster) -> None:
    cluster.image.topics["orders"].partitions[0] = AT_REST._replace(isr=(2,), leader=2)
    cluster.dead.add(1)
    with ClusterClient(Connection("host-1:1")) as client:
        assert [str(one.partition) for one in examine(client).under_replicated] == ["orders-0"]
    assert cluster.now_s == 0


def test_a_replica_that_is_being_added_is_not_missed(cluster: AnsweringCluster) -> None:
    moving = PartitionRegistration((1, 4, 2), (1, 2), 1, adding=(4,), removing=(2,))
    cluster.image.topics["orders"].partitions[0] = moving
    with ClusterClient(Connection("host-1:1")) as client:
        assert examine(client).under_replicated == []
        cluster.image.topics["orders"].partitions[0] = moving._replace(isr=(1, 4))
        assert len(examine(client).under_replicated) == 1


def test_a_dead_broker_does_not_tell_of_its_directories(cluster: AnsweringCluster) -> None:
    cluster.dead.add(2)
    with ClusterClient(Connection("host-1:1")) as client:
        assert requests.log_dir_moves(client, [Replica(2, "orders", 0)]) == {}


def test_a_change_of_configs_waits_for_a_broker_that_waits_for_zookeeper(cluster: AnsweringCluster) -> None:
    with ClusterClient(Connection("host-1:1")) as client:
        alter_configs(client, TOPIC, "orders", Change({"retention.ms": "1"}, []))
        requests.alter_brokers(client, {2: Change({}, ["x"])})
    altering = [asked for asked in cluster.timeouts_s if asked[0].startswith("IncrementalAlter")]
    assert altering == [("IncrementalAlterConfigsRequest", 30.0)] * 2


def test_the_broker_whose_throttle_stays_is_named(
    cluster: AnsweringCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.lose(2)
    file = tmp_path / "move.json"
    file.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}))
    words = ["--bootstrap-server", "host-1:1", "--verify", "--reassignment-json-file", str(file)]
    assert tool.run(reassign_partitions.TABLE, reassign_partitions.execute, words) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "Clearing broker-level throttles on brokers 1,2,3,4",
        "Broker 2 does not answer: its throttles stay; run this again when it is back",
        "Clearing topic-level throttles on topic orders",
    ]
