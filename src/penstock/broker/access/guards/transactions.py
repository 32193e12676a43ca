"""InitProducerId and AddPartitionsToTxn."""

from typing import TYPE_CHECKING, Any, Final

from penstock.broker.access.guards.forms import Asker, Passage, refusal_of, struct_of
from penstock.model.acl import Operation, ResourceType
from penstock.model.errors import ErrorCode
from penstock.model.internal_topics import is_internal

if TYPE_CHECKING:
    from penstock.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
    from penstock.wire.messages.init_producer_id import InitProducerIdRequest

FROM_BROKERS: Final = 4
"""Of AddPartitionsToTxn: from here on the request is one of brokers."""


def init_producer_id(asker: Asker, request: "InitProducerIdRequest", response: "type[Any]") -> Passage | None:
    """Write on the transactional id. Without one: IdempotentWrite on the cluster, or Write on any topic."""
    if request.transactional_id is not None:
        if asker.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            return None
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    else:
        if asker.may_in_cluster(Operation.IDEMPOTENT_WRITE, tells=False) or asker.may_any(
            Operation.WRITE, ResourceType.TOPIC
        ):
            return None
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    def finish(answer: Any) -> None:
        answer.error_code = int(code)
        answer.producer_id = answer.producer_epoch = -1

    return Passage(None, finish)


def add_partitions(
    asker: Asker, request: "AddPartitionsToTxnRequest", response: "type[Any]"
) -> Passage | None:
    """Of clients: Write on the transactional id and on each topic; one topic that is refused fails the others. Of brokers:
    ClusterAction."""
    if asker.call.api_version >= FROM_BROKERS:
        asker.need_in_cluster(Operation.CLUSTER_ACTION)
        return None
    wanted = request.v3_and_below_topics
    transactional_id = request.v3_and_below_transactional_id
    if not asker.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        codes = {topic.name: code for topic in wanted}
    else:
        codes = {
            topic.name: ErrorCode.TOPIC_AUTHORIZATION_FAILED
            for topic in wanted
            if is_internal(topic.name) or not asker.may(Operation.WRITE, ResourceType.TOPIC, topic.name)
        }
    if not codes:
        return None
    kind = struct_of(response, "results_by_topic_v3_and_below")
    image = asker.node.image

    def why(name: str, index: int) -> int:
        if name in codes:
            return int(codes[name])
        exists = image.partition(name, index) is not None
        return int(ErrorCode.OPERATION_NOT_ATTEMPTED if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    results = []
    for topic in wanted:
        result: Any = refusal_of(kind, topic, ErrorCode.NONE)
        for part in result.results_by_partition:
            part.partition_error_code = why(topic.name, part.partition_index)
        results.append(result)
    return Passage(None, lambda answer: setattr(answer, "results_by_topic_v3_and_below", results))
