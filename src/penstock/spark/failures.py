"""What a user can get wrong, or lose. Every message names the option or the place."""


class BadOption(ValueError):
    """An option that is not one, or whose value cannot be."""

    def __init__(self, option: str, complaint: str) -> None:
        super().__init__(f"option '{option}' {complaint}")
        self.option = option


class DataLoss(RuntimeError):
    """Records that the query has not read are gone, and `failOnDataLoss` is true."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Some records may have been missed. If that is acceptable, set the option "
            "'failOnDataLoss' to false"
        )


class NotWritten(RuntimeError):
    """The cluster did not take rows. The task fails, and Spark decides about another attempt."""


class NotTheSameBatch(RuntimeError):
    """A batch that was written in part is replayed with other tasks than before, and `exactlyOnce` is true."""

    def __init__(self, difference: str) -> None:
        super().__init__(
            f"{difference}: rows of it may be written twice or not at all. 'exactlyOnce' needs the tasks of a batch "
            "to be the same when it is replayed. Set back what was changed since the last run: 'minPartitions', "
            "'maxRecordsPerPartition', repartition, the number of cores; or two writes of a batch share a "
            "'transactionalIdPrefix'"
        )


class CheckpointWentBack(RuntimeError):
    """A checkpoint is older than what was written from it, and `exactlyOnce` is true."""

    def __init__(self, batch_id: int, last_batch_id: int, query: str) -> None:
        super().__init__(
            f"the checkpoint is at batch {batch_id}, but batch {last_batch_id} of '{query}' was written already: a backup was "
            "restored, or files of the checkpoint were lost. Which rows are missing cannot be told. Restore the newest "
            "checkpoint; or start with a new one and 'startingOffsets' where the target ends"
        )
