"""What the controller knows about brokers when an in-sync set gets smaller: which brokers answer, and whose logs are intact.

Replicas A and B are in sync. A loses its power, and with it what its disk had not kept; until its session ends it seems to be
there. Two rules keep A from being the only one that counts:

- A lost broker leaves an ISR only if a member remains that has answered since then (`silent` have not). Until then nothing is
decided: either A answers, or A is lost too. Then the ISR is (A, B), and there is no leader.
- When all members were gone, the ISR keeps with it in which registrations they were in sync. One that comes back and has lost
  something since then leads only when all others are back and have too, or have been waited for (`recent` are not there for
  long enough).

    A   there   no power                                back: has lost something
    B   there   there     stops, or its session ends                               back: has lost nothing
    ISR A, B                                            A, B, nobody leads         B

What a broker has lost is its own word (`BrokerRegistration.intact_since`); a broker that says nothing of it has lost something.
"""

from collections.abc import Collection
from typing import NamedTuple

from penstock.metadata.image import NO_BROKER_EPOCH, PartitionRegistration
from penstock.metadata.znodes import EpochsSeen


class Standing(NamedTuple):
    seen: EpochsSeen = EpochsSeen()
    silent: Collection[int] = ()
    """There, and have not answered since the last that was missed."""
    recent: Collection[int] = ()
    """There for so short a time that those who are not are waited for."""

    def epochs_of(self, isr: tuple[int, ...]) -> tuple[int, ...]:
        """In which registrations they were in sync, for an ISR of which nobody is left; empty where none is known."""
        epochs = tuple(self.seen.last.get(id, NO_BROKER_EPOCH) for id in isr)
        return epochs if any(epoch != NO_BROKER_EPOCH for epoch in epochs) else ()

    def has_forgotten(self, partition: PartitionRegistration, broker_id: int) -> bool:
        """Whether a member of the ISR may have lost something of this partition since it was in sync."""
        if not partition.isr_epochs:
            return False
        epoch = partition.isr_epochs[partition.isr.index(broker_id)]
        return epoch == NO_BROKER_EPOCH or self.seen.intact_since.get(broker_id, epoch + 1) > epoch


NOTHING_KNOWN = Standing()
