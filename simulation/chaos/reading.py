"""Where one consumer of the group is in each of its partitions, and whether it was thrown back.

Records may come twice, but for one reason only: the partition was assigned anew, and not all that was read had been committed. So
within an assignment offsets go up, and an assignment begins where, or after, the group was last told that it had committed.
"""

from collections.abc import Iterable

from simulation.chaos.ledger import Ledger, Wrong


class Reading:
    def __init__(self, consumer: str, ledger: Ledger) -> None:
        self._consumer, self._ledger = consumer, ledger
        self._least: dict[int, int] = {}  # by assigned partition: the least offset that may come next

    def assigned(self, partitions: Iterable[int]) -> None:
        """Before the consumer asks where to begin: by then no commit of a member before it can still come."""
        for partition in partitions:
            self._least[partition] = self._ledger.last_commit(partition)

    def revoked(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self._least.pop(partition, None)

    def consumed(self, partition: int, offset: int, value: bytes) -> None:
        self._ledger.consumed(partition, offset, value)
        least = self._least.get(partition)
        if least is None:  # it came with the batch during which the partition was taken away
            return
        if offset < least:
            self._ledger.complain(
                Wrong.WENT_BACK,
                f"{self._consumer}, partition {partition}: offset {offset}, {least} or more was due",
            )
        self._least[partition] = offset + 1
