"""Producer ids for idempotent producers: taken from the tree by the thousand, handed out one by one."""

from asyncio import Lock

from penstock.controller.producer_ids import next_block
from penstock.metadata import znodes
from penstock.metadata.tree import BadVersion, MetadataTree, TreeError
from penstock.model.errors import ApiError, ErrorCode


class ProducerIds:
    def __init__(self, tree: MetadataTree, broker_id: int) -> None:
        self._tree = tree
        self._broker_id = broker_id
        self._next = 0
        self._end = 0
        self._lock = Lock()

    async def next(self) -> int:
        """COORDINATOR_LOAD_IN_PROGRESS, which every client takes as "try again here", while the tree gives no block."""
        async with self._lock:
            while self._next >= self._end:
                try:
                    block, claim = next_block(await self._tree.get(znodes.PRODUCER_ID_BLOCK), self._broker_id)
                    await self._tree.multi([claim])
                except BadVersion:
                    continue  # another broker was faster: ask for the block after its
                except TreeError as error:
                    raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error
                self._next, self._end = block.first_id, block.last_id + 1
            self._next += 1
            return self._next - 1
