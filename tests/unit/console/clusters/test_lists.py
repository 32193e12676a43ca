"""Pages of long lists."""

from penstock.console.clusters import lists
from penstock.console.clusters.lists import Wanted
from penstock.console.clusters.model import GroupKind
from tests.unit.console.clusters.making import group, topic

ALL = [
    topic(f"topic-{number:05}", per_second=float(number % 97), partitions=1 + number % 3)
    for number in range(10_000)
]


def everything(name: str) -> bool:
    return True


def names(wanted: Wanted) -> list[str]:
    return [row.name for row in lists.topics(ALL, wanted, may_see=everything).rows]


def test_the_first_page_of_ten_thousand_topics_is_in_the_order_of_their_names() -> None:
    page = lists.topics(ALL, Wanted(), may_see=everything)
    assert (page.total, page.pages, len(page.rows)) == (10_000, 400, 25)
    assert [row.name for row in page.rows[:2]] == ["topic-00000", "topic-00001"]


def test_a_page_behind_the_last_is_the_last() -> None:
    page = lists.topics(ALL, Wanted(page=999_999), may_see=everything)
    assert (page.page, page.rows[-1].name) == (400, "topic-09999")


def test_all_pages_together_are_all_rows_once() -> None:
    wanted = [Wanted(page=number, page_size=200, sort="rate", descending=True) for number in range(1, 51)]
    found = [name for one in wanted for name in names(one)]
    assert sorted(found) == [row.name for row in ALL]


def test_sorting_by_rate_is_by_number_and_equal_ones_keep_their_order() -> None:
    page = lists.topics(ALL, Wanted(sort="rate", descending=True, page_size=200), may_see=everything)
    rates = [row.per_second or 0.0 for row in page.rows]
    assert rates == sorted(rates, reverse=True)
    assert page.rows[0].name == "topic-00096"


def test_what_is_not_known_comes_last_whichever_way_round() -> None:
    rows = [topic("a", size_bytes=None), topic("b", size_bytes=2), topic("c", size_bytes=1)]
    for descending, order in ((False, ["c", "b", "a"]), (True, ["b", "c", "a"])):
        page = lists.topics(rows, Wanted(sort="size", descending=descending), may_see=everything)
        assert [row.name for row in page.rows] == order


def test_a_search_takes_several_words_in_any_case() -> None:
    assert names(Wanted(search="TOPIC 00777")) == ["topic-00777"]
    assert names(Wanted(search=".*")) == [], "nothing in a search is special"


def test_topics_that_a_visitor_may_not_see_are_not_counted_either() -> None:
    page = lists.topics(ALL, Wanted(), may_see=lambda name: name.endswith("7"))
    assert page.total == 1000


def test_internal_topics_are_shown_when_they_are_asked_for() -> None:
    rows = [topic("__consumer_offsets", is_internal=True), topic("orders")]
    assert lists.topics(rows, Wanted(), may_see=everything).total == 1
    assert lists.topics(rows, Wanted(internal=True), may_see=everything).total == 2


def test_only_topics_with_trouble() -> None:
    rows = [topic("a"), topic("b", offline=1), topic("c", under_replicated=2)]
    assert [row.name for row in lists.topics(rows, Wanted(kind="trouble"), may_see=everything).rows] == [
        "b",
        "c",
    ]


def test_groups_by_lag_and_by_kind() -> None:
    rows = [
        group("a", lag=5),
        group("b", lag=None),
        group("c", lag=50),
        group("d", lag=1, kind=GroupKind.SPARK),
    ]
    page = lists.groups(rows, Wanted(sort="lag", descending=True), may_see=everything)
    assert [row.name for row in page.rows] == ["c", "a", "d", "b"]
    assert [row.name for row in lists.groups(rows, Wanted(kind="spark"), may_see=everything).rows] == ["d"]


def test_a_sort_that_nobody_knows_is_the_order_of_the_names() -> None:
    assert names(Wanted(sort="__class__", descending=True))[0] == "topic-00000"


def test_the_size_of_a_page_is_bounded() -> None:
    assert len(names(Wanted(page_size=1_000_000))) == lists.MAX_PAGE_SIZE
    assert len(names(Wanted(page_size=-3))) == 1
