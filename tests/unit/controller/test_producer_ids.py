import pytest

from penstock.controller.producer_ids import next_block
from penstock.metadata.tree import Set, TreeNode
from penstock.metadata.znodes import ProducerIdBlock, encode_producer_id_block
from penstock.model.errors import ApiError


def test_the_first_block_begins_at_0() -> None:
    block, op = next_block(TreeNode(b"", 0), 1)
    assert block == ProducerIdBlock(1, 0, 999)
    data = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    assert op == Set("/latest_producer_id_block", data, 0)


def test_the_next_block_follows_the_latest_and_names_its_version() -> None:
    latest = encode_producer_id_block(ProducerIdBlock(2, 5000, 5999))
    block, op = next_block(TreeNode(latest, 6), 1)
    assert (block.first_id, block.last_id) == (6000, 6999)
    assert op.version == 6


def test_the_last_ids_are_not_handed_out_twice() -> None:
    latest = encode_producer_id_block(ProducerIdBlock(2, 0, 2**63 - 500))
    with pytest.raises(ApiError, match="All producer ids"):
        next_block(TreeNode(latest, 6), 1)
