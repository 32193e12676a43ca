"""What a driver's error means for a task: the same again later, a wrong row, or no hope."""

from __future__ import annotations

import sqlite3
from enum import Enum
from typing import Any, Final

from penstock.connect.errors import ConnectError, DataError, Hopeless, RetriableError


class Sort(Enum):
    AWAY = "the database is away, or busy"
    ROW = "a row does not fit"
    LOGIN = "the login is refused"
    OTHER = "something else"


_AWAY_CLASSES: Final = ("08", "53", "57", "58", "40")
_ROW_CLASSES: Final = ("21", "22", "23", "44")
_ROW_STATES: Final = ("42804", "42846")  # a type that does not fit; no cast
_LOGIN_STATES: Final = ("28000", "28P01")
_LOGIN_WORDS: Final = ("password authentication failed", "no password supplied", "no pg_hba.conf entry")
_MYSQL_LOGIN: Final = (1044, 1045, 1698)
_MYSQL_AWAY: Final = (
    1037, 1038, 1040, 1041, 1053, 1077, 1079, 1080, 1158, 1159, 1160, 1161, 1203, 1205, 1213, 1226, 1290, 1317, 1792,
    1836, 1927, 2002, 2003, 2005, 2006, 2012, 2013, 2055,
)  # fmt: skip
_MYSQL_ROW: Final = (
    1048, 1062, 1136, 1216, 1217, 1264, 1265, 1292, 1364, 1366, 1367, 1406, 1411, 1425, 1451, 1452, 1557, 1586, 1690, 1692,
    3140, 3819, 4025, 1416, 1153,
)  # fmt: skip
_SQLITE_AWAY: Final = ("locked", "busy", "disk i/o")


def sort_of(error: BaseException) -> Sort:
    """Of a driver's error, or of SQLAlchemy's around it."""
    if getattr(error, "connection_invalidated", False):
        return Sort.AWAY
    orig: Any = getattr(error, "orig", None) or error
    module = type(orig).__module__.split(".")[0]
    if module.startswith("psycopg"):
        return _of_postgresql(orig)
    if module == "pymysql":
        return _of_mysql(orig)
    if isinstance(orig, sqlite3.Error):
        return _of_sqlite(orig)
    if isinstance(orig, OSError):
        return Sort.AWAY
    if isinstance(orig, ValueError | TypeError | OverflowError | ArithmeticError):
        return Sort.ROW  # a driver that cannot tell the value
    return Sort.OTHER


def failure_of(error: BaseException, doing: str) -> ConnectError:
    """The error for the task, with what it was about."""
    orig = getattr(error, "orig", None) or error
    text = f"{doing}: {str(orig).strip() or type(orig).__name__}"
    kind = {Sort.AWAY: RetriableError, Sort.ROW: DataError, Sort.LOGIN: Hopeless, Sort.OTHER: ConnectError}
    return kind[sort_of(error)](text)


def _of_postgresql(error: Any) -> Sort:
    state = error.sqlstate
    text = str(error)
    if state in _LOGIN_STATES or (state is None and any(words in text for words in _LOGIN_WORDS)):
        return Sort.LOGIN
    if state is None:
        names = [each.__name__ for each in type(error).__mro__]
        if "DataError" in names or "ProgrammingError" in names:
            return Sort.ROW  # psycopg cannot tell the value, such as a NUL in a text
        return Sort.AWAY if "OperationalError" in names or "InterfaceError" in names else Sort.OTHER
    if state[:2] in _ROW_CLASSES or state in _ROW_STATES:
        return Sort.ROW
    return Sort.AWAY if state[:2] in _AWAY_CLASSES or state == "55P03" else Sort.OTHER


def _of_mysql(error: Any) -> Sort:
    code = error.args[0] if error.args else None
    if code in _MYSQL_LOGIN:
        return Sort.LOGIN
    if code in _MYSQL_AWAY or code == 0 or type(error).__name__ == "InterfaceError":
        return Sort.AWAY
    if code in _MYSQL_ROW or type(error).__name__ in ("DataError", "IntegrityError"):
        return Sort.ROW
    return Sort.OTHER


def _of_sqlite(error: sqlite3.Error) -> Sort:
    text = str(error).lower()
    if isinstance(error, sqlite3.OperationalError):
        return Sort.AWAY if any(word in text for word in _SQLITE_AWAY) else Sort.OTHER
    if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError | sqlite3.InterfaceError):
        return Sort.ROW
    return Sort.ROW if "binding" in text else Sort.OTHER
