"""Producer ids for idempotent producers: taken from the tree by the thousand, handed out one by one."""

from asyncio import Lock

from penstock.controller.producer_ids import next_block
from penstock.metadata import znodes
from penstock.metadata.tree import BadVersion, MetadataTree


class ProducerIds:
    def __init__(self, tree: MetadataTree, broker_id: int) -> None:
        self._tree = tree
        self._broker_id = broker_id
        self._next = 0
        self._end = 0
        self._lock = Lock()

    async def next(self) -> int:
        async with self._lock:
            while self._next >= self._end:
                block, claim = next_block(await self._tree.get(znodes.PRODUCER_ID_BLOCK), self._broker_id)
                try:
                    await self._tree.multi([claim])
                except BadVersion:
                    continue  # another broker was faster: ask for the block after its
                self._next, self._end = block.first_id, block.last_id + 1
            self._next += 1
            return self._next - 1
