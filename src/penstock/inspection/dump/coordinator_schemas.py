"""The fields of the records that Kafka's coordinators and its quorum keep in internal topics, as of Kafka 4.3.

A field is written `name:type`, then what is special about it: `@3+` or `@1` the versions that have it, `?` it may be
null, `#0` it is the tagged field 0, `=-1` the value that a tagged field is not shown with. `[]` before a type is an
array. A struct inside is `(head, fields)`. The order is that of the JSON which Kafka prints; untagged fields stand on
disk in the same order.
"""

from typing import NamedTuple, TypeAlias

Spec: TypeAlias = "str | tuple[str, tuple[Spec, ...]]"
Specs: TypeAlias = tuple[Spec, ...]


class Schema(NamedTuple):
    fields: Specs
    highest_version: int = 0
    flexible_from: int = 0


class RecordType(NamedTuple):
    key: Schema
    value: Schema


NEVER_FLEXIBLE = 32767

_GROUP = Schema(("groupId:string",), 0, NEVER_FLEXIBLE)
_MEMBER = Schema(("groupId:string", "memberId:string"), 0, NEVER_FLEXIBLE)
_OFFSET_KEY = Schema(("group:string", "topic:string", "partition:int32"), 0, NEVER_FLEXIBLE)
_SHARE_KEY = Schema(("groupId:string", "topicId:uuid", "partition:int32"), 0, NEVER_FLEXIBLE)

_TOPIC_PARTITIONS: Specs = ("topicId:uuid", "partitions:[]int32")
_OWNED: Specs = (*_TOPIC_PARTITIONS, "assignmentEpochs:[]int32?#0")
_NAMED_PARTITIONS: Specs = ("topic:string", "partitions:[]int32")
_KEY_VALUE: Specs = ("key:string", "value:string")
_TASKS: Specs = ("subtopologyId:string", "partitions:[]int32")
_OWNED_TASKS: Specs = (*_TASKS, "assignmentEpochs:[]int32?#0")
_STATE_BATCHES: Spec = (
    "stateBatches:[]",
    ("firstOffset:int64", "lastOffset:int64", "deliveryState:int8", "deliveryCount:int16"),
)
_TOPIC_INFO: Specs = (
    "name:string",
    "partitions:int32",
    "replicationFactor:int16",
    ("topicConfigs:[]", _KEY_VALUE),
)
_ASSIGNMENT_METADATA = Schema(("assignmentEpoch:int32", "assignmentTimestamp:int64#0"))

_OFFSET_VALUE = Schema(
    (
        "offset:int64",
        "leaderEpoch:int32@3+",
        "metadata:string",
        "commitTimestamp:int64",
        "expireTimestamp:int64@1",
        "topicId:uuid@4+#0",
    ),
    4,
    4,
)
_CLASSIC_GROUP = Schema(
    (
        "protocolType:string",
        "generation:int32",
        "protocol:string?",
        "leader:string?",
        "currentStateTimestamp:int64@2+",
        (
            "members:[]",
            (
                "memberId:string",
                "groupInstanceId:string?@3+",
                "clientId:string",
                "clientHost:string",
                "rebalanceTimeout:int32@1+",
                "sessionTimeout:int32",
                "subscription:bytes",
                "assignment:bytes",
            ),
        ),
    ),
    4,
    4,
)
_CONSUMER_MEMBER = Schema(
    (
        "instanceId:string?",
        "rackId:string?",
        "clientId:string",
        "clientHost:string",
        "subscribedTopicNames:[]string",
        "subscribedTopicRegex:string?",
        "rebalanceTimeoutMs:int32",
        "serverAssignor:string?",
        (
            "classicMemberMetadata:struct?#0",
            ("sessionTimeoutMs:int32", ("supportedProtocols:[]", ("name:string", "metadata:bytes"))),
        ),
    )
)
_STREAMS_MEMBER = Schema(
    (
        "instanceId:string?",
        "rackId:string?",
        "clientId:string",
        "clientHost:string",
        "rebalanceTimeoutMs:int32",
        "topologyEpoch:int32",
        "processId:string",
        ("userEndpoint:struct?", ("host:string", "port:uint16")),
        ("clientTags:[]", _KEY_VALUE),
    )
)
_STREAMS_TOPOLOGY = Schema(
    (
        "epoch:int32",
        (
            "subtopologies:[]",
            (
                "subtopologyId:string",
                "sourceTopics:[]string",
                "sourceTopicRegex:[]string",
                ("stateChangelogTopics:[]", _TOPIC_INFO),
                "repartitionSinkTopics:[]string",
                ("repartitionSourceTopics:[]", _TOPIC_INFO),
                (
                    "copartitionGroups:[]",
                    ("sourceTopics:[]int16", "sourceTopicRegex:[]int16", "repartitionSourceTopics:[]int16"),
                ),
            ),
        ),
    )
)
_CURRENT: Specs = ("memberEpoch:int32", "previousMemberEpoch:int32", "state:int8")

GROUP_RECORDS: dict[int, RecordType] = {
    0: RecordType(
        _OFFSET_KEY,
        Schema(("offset:int64", "metadata:string", "commitTimestamp:int64"), 0, NEVER_FLEXIBLE),
    ),
    1: RecordType(_OFFSET_KEY, _OFFSET_VALUE),
    2: RecordType(Schema(("group:string",), 0, NEVER_FLEXIBLE), _CLASSIC_GROUP),
    3: RecordType(_GROUP, Schema(("epoch:int32", "metadataHash:int64#0"))),
    4: RecordType(
        _GROUP,
        Schema(
            (
                (
                    "topics:[]",
                    (
                        "topicId:uuid",
                        "topicName:string",
                        "numPartitions:int32",
                        ("partitionMetadata:[]", ("partition:int32", "racks:[]string")),
                    ),
                ),
            )
        ),
    ),
    5: RecordType(_MEMBER, _CONSUMER_MEMBER),
    6: RecordType(_GROUP, _ASSIGNMENT_METADATA),
    7: RecordType(_MEMBER, Schema((("topicPartitions:[]", _TOPIC_PARTITIONS),))),
    8: RecordType(
        _MEMBER,
        Schema((*_CURRENT, ("assignedPartitions:[]", _OWNED), ("partitionsPendingRevocation:[]", _OWNED))),
    ),
    10: RecordType(
        _MEMBER,
        Schema(("rackId:string?", "clientId:string", "clientHost:string", "subscribedTopicNames:[]string")),
    ),
    11: RecordType(_GROUP, Schema(("epoch:int32", "metadataHash:int64"))),
    12: RecordType(_GROUP, _ASSIGNMENT_METADATA),
    13: RecordType(_MEMBER, Schema((("topicPartitions:[]", _TOPIC_PARTITIONS),))),
    14: RecordType(_MEMBER, Schema((*_CURRENT, ("assignedPartitions:[]", _TOPIC_PARTITIONS)))),
    15: RecordType(
        _GROUP,
        Schema(
            (
                ("initializingTopics:[]", ("topicId:uuid", "topicName:string", "partitions:[]int32")),
                ("initializedTopics:[]", ("topicId:uuid", "topicName:string", "partitions:[]int32")),
                ("deletingTopics:[]", ("topicId:uuid", "topicName:string")),
            )
        ),
    ),
    16: RecordType(
        Schema(("groupId:string", "regularExpression:string"), 0, NEVER_FLEXIBLE),
        Schema(("topics:[]string", "version:int64", "timestamp:int64")),
    ),
    17: RecordType(
        _GROUP,
        Schema(
            (
                "epoch:int32",
                "metadataHash:int64",
                "validatedTopologyEpoch:int32#0=-1",
                ("lastAssignmentConfigs:[]?#1", _KEY_VALUE),
            )
        ),
    ),
    19: RecordType(_MEMBER, _STREAMS_MEMBER),
    20: RecordType(_GROUP, _ASSIGNMENT_METADATA),
    21: RecordType(
        _MEMBER,
        Schema((("activeTasks:[]", _TASKS), ("standbyTasks:[]", _TASKS), ("warmupTasks:[]", _TASKS))),
    ),
    22: RecordType(
        _MEMBER,
        Schema(
            (
                *_CURRENT,
                ("activeTasks:[]", _OWNED_TASKS),
                ("standbyTasks:[]", _OWNED_TASKS),
                ("warmupTasks:[]", _OWNED_TASKS),
                ("activeTasksPendingRevocation:[]", _OWNED_TASKS),
                ("standbyTasksPendingRevocation:[]", _OWNED_TASKS),
                ("warmupTasksPendingRevocation:[]", _OWNED_TASKS),
            )
        ),
    ),
    23: RecordType(_GROUP, _STREAMS_TOPOLOGY),
}
CLASSIC_GROUP_TYPE = 2

TRANSACTION_RECORDS: dict[int, RecordType] = {
    0: RecordType(
        Schema(("transactionalId:string",), 0, NEVER_FLEXIBLE),
        Schema(
            (
                "producerId:int64",
                "previousProducerId:int64@1+#0=-1",
                "nextProducerId:int64@1+#1=-1",
                "producerEpoch:int16",
                "nextProducerEpoch:int16@1+#3=-1",
                "transactionTimeoutMs:int32",
                "transactionStatus:int8",
                ("transactionPartitions:[]?", ("topic:string", "partitionIds:[]int32")),
                "transactionLastUpdateTimestampMs:int64",
                "transactionStartTimestampMs:int64",
                "clientTransactionVersion:int16@1+#2",
            ),
            1,
            1,
        ),
    ),
}

SHARE_RECORDS: dict[int, RecordType] = {
    0: RecordType(
        _SHARE_KEY,
        Schema(
            (
                "snapshotEpoch:int32",
                "stateEpoch:int32",
                "leaderEpoch:int32",
                "startOffset:int64",
                "deliveryCompleteCount:int32#0=-1",
                "createTimestamp:int64",
                "writeTimestamp:int64",
                _STATE_BATCHES,
            )
        ),
    ),
    1: RecordType(
        _SHARE_KEY,
        Schema(
            (
                "snapshotEpoch:int32",
                "leaderEpoch:int32",
                "startOffset:int64",
                "deliveryCompleteCount:int32#0=-1",
                _STATE_BATCHES,
            )
        ),
    ),
}

# What the members of a classic group tell one another, inside its records.
SUBSCRIPTION = Schema(
    (
        "topics:[]string",
        "userData:bytes?",
        ("ownedPartitions:[]@1+", _NAMED_PARTITIONS),
        "generationId:int32@2+",
        "rackId:string?@3+",
    ),
    3,
    NEVER_FLEXIBLE,
)
ASSIGNMENT = Schema((("assignedPartitions:[]", _NAMED_PARTITIONS), "userData:bytes?"), 3, NEVER_FLEXIBLE)

# The quorum's control records: each opens with its own version.
_VOTER: Specs = ("voterId:int32", "voterDirectoryId:uuid@1+")
LEADER_CHANGE = Schema(
    ("version:int16", "leaderId:int32", ("voters:[]", _VOTER), ("grantingVoters:[]", _VOTER)), 1
)
SNAPSHOT_HEADER = Schema(("version:int16", "lastContainedLogTimestamp:int64"))
SNAPSHOT_FOOTER = Schema(("version:int16",))
KRAFT_VERSION = Schema(("version:int16", "kRaftVersion:int16"))
KRAFT_VOTERS = Schema(
    (
        "version:int16",
        (
            "voters:[]",
            (
                "voterId:int32",
                "voterDirectoryId:uuid",
                ("endpoints:[]", ("name:string", "host:string", "port:uint16")),
                ("kRaftVersionFeature:struct", ("minSupportedVersion:int16", "maxSupportedVersion:int16")),
            ),
        ),
    )
)
