"""The web services' log of requests."""

import asyncio
import io

from penstock.web.access_log import AccessLog


def test_who_asks_and_for_what_make_no_lines_of_their_own() -> None:
    stream = io.StringIO()

    async def ask() -> None:
        log = AccessLog(is_on=True, stream=stream)
        log.tell(
            client="10.0.0.1", principal="eve\n10.0.0.1 ana", method="GET", target="/x\r\n/y", status=200, size=1,
            seconds=0.1, request_id="a-1",
        )  # fmt: skip
        log.flush()

    asyncio.run(ask())
    (line,) = stream.getvalue().rstrip("\n").split("\n")
    assert line.startswith(r"10.0.0.1 'eve\n10.0.0.1 ana' ")
    assert r"/x\r\n/y" in line
