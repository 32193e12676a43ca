"""`cluster.dead_letters`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from penstock.admin.clients import ClusterClients

if TYPE_CHECKING:
    from penstock.admin.dead_letters.replaying import Summary
    from penstock.consumer.dead_letters import DeadLetter


class DeadRecord(NamedTuple):
    """A record of a dead letter topic."""

    topic: str
    """The dead letter topic, as partition and offset are those in it."""
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    letter: DeadLetter | None
    """Where it came from and why it failed; None where neither penstock.consumer nor a connector of Connect says so."""
    is_replayed: bool


class DeadLetters:
    """Dead letter topics: what consumers made with penstock.consumer could not handle. Uses librdkafka."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def replay(
        self,
        topic: str,
        *,
        to: str | None = None,
        cause: str | None = None,
        limit: int | None = None,
        keep_timestamps: bool = False,
        dry_run: bool = False,
        show: Callable[[int, int], None] | None = None,
    ) -> Summary:
        """Writes dead letters to where they came from (or to the topic `to`), each once; what is replayed is remembered in the
        cluster. `show` hears how many records have been looked at, and of how many.

        >>> cluster.dead_letters.replay("orders.dlq", cause="TimeoutError").replayed
        Counter({'orders': 3})
        """
        from penstock.admin.dead_letters.replaying import Choice, Replay

        choice = Choice(to, cause, limit, keep_timestamps)
        job = Replay(self._clients.connection, topic, choice, dry_run=dry_run)
        total = sum(job.reader.ends.values())
        seen = 0

        def advance(count: int) -> None:
            nonlocal seen
            seen += count
            if show is not None:
                show(seen, total)

        try:
            return job.run(advance)
        finally:
            job.close()

    # The last one: below it, `list` would be this method.
    def list(
        self, topic: str, *, cause: str | None = None, waiting: bool = False, limit: int | None = None
    ) -> list[DeadRecord]:
        """The records of a dead letter topic as of now: with a cause (an exception's class, or a part of its message), that wait
        for a replay, no more than `limit`.

        >>> cluster.dead_letters.list("orders.dlq", waiting=True)[0].letter.failure.message
        'amount is missing'
        """
        from penstock.admin.dead_letters.reading import DeadLetterReader, matches

        found = []
        reader = DeadLetterReader(self._clients.connection, topic)
        try:
            replayed = reader.replayed()
            for letter in reader.letters():
                (number, offset), message = letter.place, letter.message
                is_replayed = offset in replayed[number]
                if matches(letter, cause) and not (waiting and is_replayed):
                    found.append(
                        DeadRecord(
                            topic,
                            number,
                            offset,
                            message.timestamp()[1],
                            message.key(),
                            message.value(),
                            letter.dead,
                            is_replayed,
                        )
                    )
                    if len(found) == limit:
                        break
        finally:
            reader.close()
        return found
