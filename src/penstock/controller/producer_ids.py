"""Brokers get producer ids in blocks of a thousand: one write to the tree is enough for a thousand producers.

A block that a broker had not used up when it stopped is lost; there are 2**63 ids.
"""

from penstock.metadata import znodes
from penstock.metadata.tree import Set, TreeNode
from penstock.metadata.znodes import ProducerIdBlock
from penstock.model.errors import ApiError, ErrorCode

BLOCK_SIZE = 1000
_LAST_ID = 2**63 - 1


def next_block(node: TreeNode, broker_id: int) -> tuple[ProducerIdBlock, Set]:
    """The block after the one in `/latest_producer_id_block`, and the op that claims it.

    The op names the node's version: when another broker was faster it fails with BadVersion, and the caller
    reads the node and asks again.
    """
    latest = znodes.decode_producer_id_block(node.data)
    first_id = 0 if latest is None else latest.last_id + 1
    if first_id > _LAST_ID - BLOCK_SIZE:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids are in use.")
    block = ProducerIdBlock(broker_id, first_id, first_id + BLOCK_SIZE - 1)
    return block, Set(znodes.PRODUCER_ID_BLOCK, znodes.encode_producer_id_block(block), node.version)
