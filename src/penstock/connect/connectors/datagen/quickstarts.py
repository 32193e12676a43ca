"""Schemas by name, with the field that is the key: what demonstrations ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Quickstart(NamedTuple):
    schema: Mapping[str, Any]
    key: str


def _of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "arg.properties": properties}


def _record(name: str, /, **fields: Any) -> dict[str, Any]:
    listed = [{"name": each, "type": kind} for each, kind in fields.items()]
    return {"type": "record", "name": name, "namespace": "penstock.datagen", "fields": listed}


def _grows(kind: str = "int", start: int = 0, step: int = 1) -> dict[str, Any]:
    return _of(kind, iteration={"start": start, "step": step})


def _between(kind: str, least: float, most: float) -> dict[str, Any]:
    return _of(kind, range={"min": least, "max": most})


def _one_of(*options: Any, kind: str = "string") -> dict[str, Any]:
    return _of(kind, options=list(options))


def _like(regex: str) -> dict[str, Any]:
    return _of("string", regex=regex)


_MOMENTS: Final = _between("long", 1_487_715_775_521, 1_519_273_364_600)
_USER: Final = _like(r"User_[1-9]")
_REGION: Final = _like(r"Region_[1-9]")
_GENDER: Final = _one_of("MALE", "FEMALE", "OTHER")
_ADDRESS: Final = _record(
    "address", city=_like(r"City_[1-9][0-9]?"), state=_like(r"State_[1-9][0-9]?"), zipcode=_between("long", 10_000, 99_999)
)  # fmt: skip
_CARD: Final = _like(r"[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{4}")

QUICKSTARTS: Final[Mapping[str, Quickstart]] = {
    "orders": Quickstart(
        _record("orders", ordertime=_MOMENTS, orderid=_grows(), itemid=_like(r"Item_[1-9][0-9]{0,2}"),
                orderunits=_between("double", 0.1, 10), address=_ADDRESS), "orderid"),
    "users": Quickstart(_record("users", registertime=_MOMENTS, userid=_USER, regionid=_REGION, gender=_GENDER), "userid"),
    "users_": Quickstart(
        _record("users_extended", registertime=_MOMENTS, userid=_USER, regionid=_REGION, gender=_GENDER,
                interests={"type": "array", "items": _one_of("News", "Travel", "Movies", "Sport", "Game"),
                           "arg.properties": {"length": 2}},
                contactinfo={"type": "map", "values": _like(r"[0-9]{10}"), "arg.properties": {"length": 2}}), "userid"),
    "pageviews": Quickstart(
        _record("pageviews", viewtime=_grows("long", 1, 10), userid=_USER, pageid=_like(r"Page_[1-9][0-9]")), "viewtime"),
    "clickstream": Quickstart(
        _record("clickstream", ip=_like(r"(111|122|222|233)\.[1-9][0-9]\.[0-9]\.[1-9]"), userid=_between("int", 1, 40),
                remote_user="string", time=_grows(start=1, step=10), _time=_grows("long", 1, 10),
                request=_one_of("GET /index.html HTTP/1.1", "GET /site/login.html HTTP/1.1", "GET /images/logo.png HTTP/1.1"),
                status=_one_of("200", "302", "404", "405", "406", "407"), bytes=_one_of("278", "1289", "2048", "4096"),
                referrer="string", agent=_one_of("Mozilla/5.0", "curl/8.5")), "ip"),
    "clickstream_codes": Quickstart(
        _record("clickstream_codes", code=_one_of(200, 302, 404, 405, 406, 407, kind="int"),
                definition=_one_of("Successful", "Redirect", "Page not found", "Method not allowed")), "code"),
    "clickstream_users": Quickstart(
        _record("clickstream_users", user_id=_grows(start=1), username=_like(r"user_[1-9][0-9]{0,2}"),
                registered_at=_MOMENTS, first_name=_one_of("Ada", "Alan", "Grace", "Edsger", "Barbara"),
                last_name=_one_of("Ng", "Berg", "Okafor", "Silva", "Novak"), city=_one_of("London", "Lagos", "Lima", "Oslo"),
                level=_one_of("Gold", "Silver", "Platinum")), "user_id"),
    "ratings": Quickstart(
        _record("ratings", rating_id=_grows("long", 1), user_id=_between("int", 0, 20), stars=_between("int", 1, 6),
                route_id=_between("int", 0, 10_000), rating_time=_grows("long", 1, 10),
                channel=_one_of("web", "iOS", "android", "iOS-test"),
                message=_one_of("thank you", "more of this please", "too slow", "never again")), "rating_id"),
    "stock_trades": Quickstart(
        _record("stock_trades", side=_one_of("BUY", "SELL"), quantity=_between("int", 1, 5000),
                symbol=_one_of("ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"), price=_between("int", 5, 1000),
                account=_like(r"(ABC|XYZ|LMN)[0-9]{3}"), userid=_USER), "symbol"),
    "inventory": Quickstart(
        _record("inventory", id=_grows("long"), quantity=_between("long", 1, 100), productid=_between("long", 1, 100)), "id"),
    "product": Quickstart(
        _record("product", id=_grows("long"), name=_like(r"Product [A-Z]{3}"), description=_like(r"[a-z]{5} [a-z]{7}"),
                price=_between("double", 1, 1000)), "id"),
    "purchases": Quickstart(
        _record("purchase", id=_grows("long"), item_type=_one_of("yacht", "car", "bike", "boat"),
                quantity=_between("long", 1, 10), price_per_unit=_between("float", 1, 100)), "id"),
    "transactions": Quickstart(
        _record("transactions", transaction_id=_grows("long", 1), card_id=_between("long", 1, 20), user_id=_USER,
                purchase_id=_grows("long"), store_id=_between("int", 1, 8)), "transaction_id"),
    "stores": Quickstart(
        _record("stores", store_id=_grows(start=1), city=_like(r"City_[1-9][0-9]?"), state=_like(r"[A-Z]{2}")), "store_id"),
    "credit_cards": Quickstart(
        _record("credit_cards", card_id=_grows("long", 1), card_number=_CARD, cvv=_like(r"[0-9]{3}"),
                expiration_date=_like(r"(0[1-9]|1[0-2])/(2[6-9]|3[0-5])")), "card_id"),
}  # fmt: skip
