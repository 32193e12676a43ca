"""Producer ids for idempotent producers: taken from the tree by the thousand, handed out one by one."""

import logging
from asyncio import Lock

from penstock.controller.producer_ids import next_block
from penstock.metadata import znodes
from penstock.metadata.tree import BadVersion, MetadataTree, TreeError
from penstock.metadata.znodes import ProducerIdBlock
from penstock.model.errors import ApiError, ErrorCode

log = logging.getLogger("penstock.broker")


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
            try:
                await self._have_block()
            except TreeError as error:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error
            self._next += 1
            return self._next - 1

    async def reserve(self) -> None:
        """Have a block before the first producer asks: the tree may be out of reach when it does."""
        async with self._lock:
            try:
                await self._have_block()
            except (TreeError, ApiError) as error:
                log.info("cannot get producer ids: %s", error)

    async def _have_block(self) -> None:
        if self._next >= self._end:
            block = await self._claim(self._broker_id)
            self._next, self._end = block.first_id, block.last_id + 1

    async def block_for(self, broker_id: int) -> ProducerIdBlock:
        """For a broker that asks the controller; refused as `next`."""
        try:
            return await self._claim(broker_id)
        except TreeError as error:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error

    async def _claim(self, broker_id: int) -> ProducerIdBlock:
        while True:
            try:
                block, claim = next_block(await self._tree.get(znodes.PRODUCER_ID_BLOCK), broker_id)
                await self._tree.multi([claim])
                return block
            except BadVersion:
                continue  # another broker was faster: ask for the block after its
