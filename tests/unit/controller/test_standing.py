"""One replica loses its power, and before anybody knows, the others go as well: it must not lead with what it has left.

Brokers 1 and 2 are in sync. Broker 1 has lost its power, is back with less, and says nothing of being intact.
"""

import pytest

from penstock.controller.balance import preferred_leaders
from penstock.controller.brokers import broker_arrived, broker_lost, replicas_failed, seen_now
from penstock.controller.elections import UNCLEAN, elect_leaders
from penstock.controller.reassignments import alter
from penstock.controller.shutdown import controlled_shutdown
from penstock.controller.standing import Standing
from penstock.metadata import znodes
from penstock.metadata.image import NO_BROKER_EPOCH, NO_LEADER, ClusterImage, PartitionRegistration
from penstock.metadata.znodes import EpochsSeen
from penstock.model.ids import TopicPartition
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.elect_leaders import ElectLeadersRequest
from tests.unit.controller.clusters import after, broker, cluster

ORDERS = TopicPartition("orders", 0)
GONE = PartitionRegistration((1, 2, 3), (1, 2), NO_LEADER, 6, 8, isr_epochs=(10, 10))


class Controller:
    """What a controller remembers from one look at the brokers to the next."""

    def __init__(self, partition: PartitionRegistration, brokers: tuple[int, ...] = (1, 2, 3)) -> None:
        self.image = cluster(partition, brokers=brokers)
        self.seen = seen_now(self.image, EpochsSeen())
        self.silent: set[int] = set()
        self.recent: set[int] = set()
        self.unclean = False

    @property
    def partition(self) -> PartitionRegistration:
        return self.image.topics["orders"].partitions[0]

    @property
    def standing(self) -> Standing:
        return Standing(self.seen, self.silent, self.recent)

    def lose(self, *ids: int, returned: tuple[int, ...] = ()) -> list[TopicPartition]:
        for id in ids:
            self.image.remove_broker(id)
        decision = broker_lost(
            self.image,
            ids,
            is_unclean_allowed=lambda name: self.unclean,
            returned=returned,
            standing=self.standing,
        )
        self.image.apply_all(decision.changes)
        self.seen = seen_now(self.image, self.seen)
        return decision.results

    def return_of(self, *ids: int, epoch: int, intact: tuple[int, ...] = ()) -> list[TopicPartition]:
        for id in ids:
            self.image.add_broker(broker(id, epoch=epoch))
        self.seen = seen_now(self.image, self.seen, intact)
        self.silent.difference_update(ids)
        self.recent.update(ids)
        return self.look()

    def look(self) -> list[TopicPartition]:
        decision = broker_arrived(
            self.image,
            self.image.brokers.keys(),
            is_unclean_allowed=lambda name: self.unclean,
            standing=self.standing,
        )
        self.image.apply_all(decision.changes)
        self.seen = seen_now(self.image, self.seen)
        return decision.results

    def shut_down(self, id: int, *others: int) -> list[tuple[str, int]]:
        decision = controlled_shutdown(self.image, id, set(others), silent=self.silent)
        self.image.apply_all(decision.changes)
        return [(each.topic_name, each.partition_index) for each in decision.results]


@pytest.mark.parametrize("leader", [1, 2])
def test_one_stops_in_order_while_the_other_has_no_power(leader: int) -> None:
    """It waits until the other is missed, and has to be waited for when it has stopped."""
    controller = Controller(PartitionRegistration((1, 2, 3), (1, 2), leader, 5, 7))
    controller.silent = {1}
    assert controller.shut_down(2) == [ORDERS]
    assert controller.partition == PartitionRegistration((1, 2, 3), (1, 2), leader, 5, 7)
    controller.silent = set()
    assert controller.lose(1) == []  # its session has ended
    assert controller.partition[1:3] == ((2,), 2)
    assert controller.shut_down(2, 3) == []
    controller.lose(2)
    assert controller.return_of(1, epoch=30) == []
    assert controller.partition[1:3] == ((2,), NO_LEADER)
    controller.return_of(2, epoch=40)
    assert controller.partition[1:3] == ((2,), 2)


def test_one_that_stops_leaves_where_another_answers() -> None:
    controller = Controller(PartitionRegistration((1, 2, 3), (1, 2, 3), 2, 5, 7))
    controller.silent = {1}
    assert controller.shut_down(2) == []
    assert controller.partition == PartitionRegistration((1, 2, 3), (1, 3), 3, 6, 8)


@pytest.mark.parametrize("leader", [1, 2])
def test_the_session_of_one_ends_while_the_other_has_no_power(leader: int) -> None:
    """Nothing is decided until the other answers or is missed as well. Then both are waited for."""
    before = PartitionRegistration((1, 2, 3), (1, 2), leader, 5, 7)
    controller = Controller(before)
    controller.silent = {1}
    assert controller.lose(2) == [ORDERS]
    assert controller.look() == ([] if leader == 1 else [ORDERS])
    assert controller.partition == before
    controller.silent = set()
    controller.lose(1, 2, returned=(1,))  # it is back already, with less
    assert controller.partition == GONE
    assert controller.return_of(1, epoch=30) == [ORDERS]
    assert controller.partition == GONE
    assert controller.return_of(2, epoch=31, intact=(2,)) == []
    assert controller.partition == PartitionRegistration((1, 2, 3), (2,), 2, 7, 9)


@pytest.mark.parametrize("leader", [1, 2])
def test_one_that_answers_late_goes_on_alone(leader: int) -> None:
    controller = Controller(PartitionRegistration((1, 2, 3), (1, 2), leader, 5, 7))
    controller.silent = {1}
    controller.lose(2)
    controller.silent = set()
    assert controller.lose(2) == []
    assert controller.partition == PartitionRegistration((1, 2, 3), (1,), 1, 6, 8)


def test_one_whose_session_ended_while_nothing_was_decided_is_still_in_sync_when_it_is_back() -> None:
    controller = Controller(PartitionRegistration((1, 2, 3), (1, 2), 1, 5, 7))
    controller.silent = {1}
    controller.lose(2)
    controller.return_of(2, epoch=20, intact=(2,))
    assert controller.partition == PartitionRegistration((1, 2, 3), (1, 2), 1, 5, 7)
    controller.lose(1)
    assert controller.partition[1:3] == ((2,), 2)


def test_one_that_forgot_leaves_at_once_although_nobody_answers() -> None:
    """What is left of its log is not needed, and it must not count as in sync."""
    controller = Controller(PartitionRegistration((1, 2, 3), (1, 2, 3), 2, 5, 7))
    controller.silent = {2}
    assert controller.lose(1, 3, returned=(1,)) == [ORDERS]
    assert controller.partition == PartitionRegistration((1, 2, 3), (2, 3), 2, 6, 8)


def test_one_that_led_and_forgot_does_not_lead_while_nothing_is_decided() -> None:
    controller = Controller(PartitionRegistration((1, 2, 3), (1, 2, 3), 1, 5, 7))
    controller.silent = {2}
    assert controller.lose(1, 3, returned=(1,)) == [ORDERS]
    assert controller.partition == PartitionRegistration(
        (1, 2, 3), (2, 3), NO_LEADER, 6, 8, isr_epochs=(10, 10)
    )
    assert controller.return_of(1, epoch=30) == [ORDERS]
    controller.silent = set()
    assert controller.look() == []
    assert controller.partition == PartitionRegistration((1, 2, 3), (2,), 2, 7, 9)


def test_one_that_answers_leads_rather_than_the_first_replica() -> None:
    controller = Controller(PartitionRegistration((1, 2, 3), (1, 2, 3), 3, 5, 7))
    controller.silent = {1}
    assert controller.lose(3) == []
    assert controller.partition == PartitionRegistration((1, 2, 3), (1, 2), 2, 6, 8)


def all_gone() -> Controller:
    controller = Controller(PartitionRegistration((1, 2, 3), (1, 2), 1, 5, 7))
    controller.lose(1, 2)
    assert controller.partition == GONE
    return controller


def test_all_are_gone_and_the_one_that_forgot_is_back_first() -> None:
    controller = all_gone()
    assert controller.return_of(1, epoch=30) == [ORDERS]
    assert controller.look() == [ORDERS]
    assert controller.partition == GONE
    controller.return_of(2, epoch=31, intact=(2,))
    assert controller.partition == PartitionRegistration((1, 2, 3), (2,), 2, 7, 9)


def test_the_one_that_lost_nothing_leads_at_once() -> None:
    controller = all_gone()
    assert controller.return_of(2, epoch=30, intact=(2,)) == []
    assert controller.partition == PartitionRegistration((1, 2, 3), (2,), 2, 7, 9)


def test_both_have_lost_nothing_and_are_back_together() -> None:
    controller = all_gone()
    controller.return_of(1, 2, epoch=30, intact=(1, 2))
    assert controller.partition == PartitionRegistration((1, 2, 3), (1, 2), 1, 7, 9)


def test_it_is_intact_as_well_when_it_is_back_for_the_second_time() -> None:
    controller = all_gone()
    controller.return_of(1, epoch=30)
    controller.silent = {2}
    controller.return_of(3, epoch=31)
    controller.silent = set()
    controller.lose(1)
    controller.return_of(1, epoch=32, intact=(1,))  # since 30, but 30 was not intact since 10
    assert controller.partition == GONE
    controller.return_of(2, epoch=33, intact=(2,))
    assert controller.partition[1:3] == ((2,), 2)


def test_all_lost_their_power_and_all_are_back() -> None:
    controller = all_gone()
    controller.return_of(2, epoch=30)
    assert controller.partition == GONE
    assert controller.return_of(1, epoch=31) == []
    assert controller.partition == PartitionRegistration((1, 2, 3), (1, 2), 1, 7, 9)


def test_the_others_are_not_waited_for_for_ever() -> None:
    controller = all_gone()
    controller.return_of(1, epoch=30)
    controller.recent = set()
    assert controller.look() == []
    assert controller.partition == PartitionRegistration((1, 2, 3), (1,), 1, 7, 9)


def test_where_unclean_elections_are_allowed_nobody_is_waited_for() -> None:
    controller = all_gone()
    controller.unclean = True
    controller.return_of(1, epoch=30)
    assert controller.partition[1:3] == ((1,), 1)


def test_an_operator_need_not_wait() -> None:
    controller = all_gone()
    controller.return_of(1, epoch=30)
    request = ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=None)
    controller.image.apply_all(elect_leaders(controller.image, request).changes)
    assert controller.partition[1:3] == ((1,), 1)


def test_a_preferred_leader_has_to_wait_like_others() -> None:
    controller = all_gone()
    controller.return_of(1, epoch=30)
    assert preferred_leaders(controller.image, [ORDERS]).changes == []


def test_a_single_replica_in_sync_never_waits() -> None:
    controller = Controller(PartitionRegistration((1, 2), (1,), 1, 5, 7))
    controller.lose(1)
    assert controller.return_of(1, epoch=30) == []
    assert controller.partition == PartitionRegistration((1, 2), (1,), 1, 7, 9)


def test_a_member_whose_registration_nobody_knew_counts_as_one_that_forgot() -> None:
    controller = Controller(PartitionRegistration((1, 2), (1, 2), 1, 5, 7), brokers=(1,))
    controller.lose(1, 2)
    assert controller.partition.isr_epochs == (10, NO_BROKER_EPOCH)
    assert controller.return_of(2, epoch=30) == [ORDERS]
    assert controller.return_of(1, epoch=31, intact=(1,)) == []
    assert controller.partition[1:3] == ((1,), 1)


def test_an_isr_of_a_controller_that_keeps_no_epochs_is_taken_as_it_is() -> None:
    controller = Controller(GONE._replace(isr_epochs=()), brokers=(3,))
    controller.return_of(1, epoch=30)
    assert controller.partition[1:3] == ((1,), 1)


def test_a_failed_directory_of_the_leader_does_not_put_one_alone_that_is_silent() -> None:
    controller = Controller(PartitionRegistration((1, 2, 3), (1, 2, 3), 3, 5, 7))
    controller.silent = {1}
    controller.image.remove_broker(2)
    controller.image.set_failed_replicas("orders", 0, [3])
    decision = replicas_failed(
        controller.image, 3, [ORDERS], is_unclean_allowed=lambda name: False, standing=controller.standing
    )
    (changed,) = after(controller.image, decision)
    assert changed == PartitionRegistration((1, 2, 3), (1, 2, 3), NO_LEADER, 6, 8, isr_epochs=(10, 10, 10))


def test_the_epochs_go_with_the_members_when_replicas_move() -> None:
    controller = Controller(GONE._replace(isr_epochs=(10, 11)), brokers=(3, 4))
    move = ReassignablePartition(partition_index=0, replicas=(2, 3))
    topic = ReassignableTopic(name="orders", partitions=[move])
    decision = alter(controller.image, AlterPartitionReassignmentsRequest(topics=[topic]))
    (changed,) = after(controller.image, decision)
    assert (changed.isr, changed.isr_epochs) == ((2,), (11,))


def test_epochs_are_kept_of_brokers_that_are_gone_while_an_isr_counts_on_them() -> None:
    image: ClusterImage = cluster(PartitionRegistration((1, 2), (1, 2), NO_LEADER), brokers=(2, 3))
    before = EpochsSeen({1: 10, 2: 9, 3: 10, 4: 10}, {1: 5, 2: 9, 3: 4, 4: 4})
    assert seen_now(image, before) == EpochsSeen({1: 10, 2: 10, 3: 10}, {1: 5, 2: 10, 3: 4})
    assert seen_now(image, before, intact={2}).intact_since == {1: 5, 2: 9, 3: 4}


def test_what_was_seen_is_written_and_read() -> None:
    seen = EpochsSeen({1: 10, 2: 9}, {1: 5, 2: 9})
    assert znodes.decode_broker_epochs(znodes.encode_broker_epochs(seen)) == seen
    assert znodes.decode_broker_epochs(b'{"version":1,"epochs":{"1":10}}') == EpochsSeen({1: 10}, {1: 10})


def test_a_partition_without_leader_is_written_with_the_epochs_of_its_members_and_read() -> None:
    data = znodes.encode_partition_state(GONE, controller_epoch=4)
    assert data == (
        b'{"controller_epoch":4,"leader":-1,"version":1,"leader_epoch":6,"isr":[1,2],"penstock_isr_epochs":[10,10]}'
    )
    assert znodes.decode_partition_state("/x", data).isr_epochs == (10, 10)
    assert znodes.decode_partition_state("/x", data.replace(b"[1,2]", b"[1]")).isr_epochs == ()
