from penstock.model.internal_topics import is_internal


def test_kafkas_internal_topics_are_known() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert is_internal("__share_group_state")
    assert not is_internal("orders")
