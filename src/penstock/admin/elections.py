"""Elections that an administrator asks for: the preferred leaders back into their places, or any leader where there is none."""

from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused, UserError
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition, by_topic
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions

ELECTIONS = {"PREFERRED": 0, "UNCLEAN": 1}
TIMEOUT_S = 30.0


def elect_leaders(
    client: ClusterClient, election: int, partitions: list[TopicPartition] | None
) -> dict[TopicPartition, Refused | None]:
    """What came of it for each partition: None where it has a new leader."""
    request = ElectLeadersRequest(
        election_type=election,
        topic_partitions=None
        if partitions is None
        else [
            TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ],
        timeout_ms=int(TIMEOUT_S * 1000),
    )
    answer = client.ask_controller(
        request,
        ElectLeadersResponse,
        codes=lambda answered: [answered.error_code],
        timeout_s=2 * TIMEOUT_S,
    )
    if answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
        raise UserError("Timeout waiting for election results")
    if answer.error_code:
        raise refused(answer.error_code)
    return {
        TopicPartition(topic.topic, one.partition_id): refused(one.error_code, one.error_message)
        if one.error_code
        else None
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }
