"""Paths that no route has: the frame passes them to another application, and websockets too."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.web.call import Receive, Scope, Send
from penstock.web.frame import Frame
from penstock.web.metrics import WebMetrics
from penstock.web.options import load
from penstock.web.routes import Routes
from penstock.web.service import App, WebService

Message = dict[str, Any]


def frame(app: App | None, **properties: str) -> Frame:
    service = WebService(name="test", title="Test", routes=Routes(), other_paths=app)
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return Frame(service, load(given).web, WebMetrics("test"))


def scope_of(path: str, kind: str = "http", method: str = "GET") -> Scope:
    return {
        "type": kind, "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [],
        "client": ("127.0.0.1", 1), "scheme": "http",
    }  # fmt: skip


class Talk:
    """One connection: what it receives, and what was sent to it."""

    def __init__(self, *messages: Message) -> None:
        self._messages = list(messages)
        self.sent: list[Message] = []
        self.may_end = asyncio.Event()

    async def receive(self) -> Message:
        if self._messages:
            return self._messages.pop(0)
        await self.may_end.wait()
        return {"type": "websocket.disconnect", "code": 1001}

    async def send(self, message: Message) -> None:
        self.sent.append(message)


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 201, "headers": [(b"Cache-Control", b"max-age=9")]})
    await send({"type": "http.response.body", "body": b"page"})


async def socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Until the browser leaves."""
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


def headers_of(message: Message) -> dict[str, str]:
    return {name.decode().lower(): value.decode() for name, value in message["headers"]}


def test_an_answer_gets_the_headers_that_it_does_not_set_itself() -> None:
    talk = Talk()
    asyncio.run(frame(page)(scope_of("/a/page"), talk.receive, talk.send))
    start, body = talk.sent
    assert (start["status"], body["body"]) == (201, b"page")
    headers = headers_of(start)
    assert headers["cache-control"] == "max-age=9"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-request-id"]


def test_the_frames_own_paths_stay_its_own() -> None:
    talk = Talk()
    asyncio.run(frame(page)(scope_of("/health"), talk.receive, talk.send))
    assert talk.sent[0]["status"] == 200


def test_a_body_beyond_the_limit_is_refused_wherever_it_is_read() -> None:
    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await page(scope, receive, send)

    talk = Talk(*[{"type": "http.request", "body": b"x" * 60, "more_body": True}] * 2)
    asyncio.run(
        frame(reading, penstock_request_max_bytes="100")(
            scope_of("/a", method="POST"), talk.receive, talk.send
        )
    )
    assert talk.sent[0]["status"] == 413


def test_a_bug_of_the_other_application_is_an_answer_without_its_text() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError("secret")

    talk = Talk()
    asyncio.run(frame(broken)(scope_of("/a"), talk.receive, talk.send))
    assert talk.sent[0]["status"] == 500
    assert b"secret" not in talk.sent[1]["body"]


def test_a_bug_behind_the_beginning_of_an_answer_begins_no_second_one() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await page(scope, receive, send)
        raise ZeroDivisionError

    talk = Talk()
    asyncio.run(frame(broken)(scope_of("/a"), talk.receive, talk.send))
    assert [message["type"] for message in talk.sent] == ["http.response.start", "http.response.body"]


def test_a_websocket_without_a_handler_goes_to_the_other_application() -> None:
    async def run() -> list[Message]:
        talk = Talk({"type": "websocket.connect"})
        talk.may_end.set()
        await frame(socket)(scope_of("/ws", "websocket"), talk.receive, talk.send)
        return talk.sent

    assert asyncio.run(run()) == [{"type": "websocket.accept"}]


def test_without_another_application_it_is_refused() -> None:
    async def run() -> list[Message]:
        talk = Talk({"type": "websocket.connect"})
        await frame(None)(scope_of("/ws", "websocket"), talk.receive, talk.send)
        return talk.sent

    assert asyncio.run(run())[0]["status"] == 404


def test_open_websockets_take_no_place_of_a_request() -> None:
    async def run() -> int:
        one = frame(socket, penstock_request_limit="2")
        talks = [Talk({"type": "websocket.connect"}) for _ in range(10)]
        looking = [
            asyncio.ensure_future(one(scope_of("/ws", "websocket"), talk.receive, talk.send))
            for talk in talks
        ]
        while not all(talk.sent for talk in talks):
            await asyncio.sleep(0)
        request = Talk()
        await one(scope_of("/health"), request.receive, request.send)
        for talk in talks:
            talk.may_end.set()
        await asyncio.gather(*looking)
        status: int = request.sent[0]["status"]
        return status

    assert asyncio.run(run()) == 200


def test_a_bug_in_a_websocket_closes_it() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        raise ZeroDivisionError("secret")

    async def run() -> list[Message]:
        talk = Talk({"type": "websocket.connect"})
        await frame(broken)(scope_of("/ws", "websocket"), talk.receive, talk.send)
        return talk.sent

    sent = asyncio.run(run())
    assert sent[-1] == {"type": "websocket.close", "code": 1011, "reason": "Internal Server Error"}


def test_a_login_of_the_frame_counts_for_the_websockets_too(tmp_path: Any) -> None:
    users = tmp_path / "users"
    users.write_text("ana: pw,user\n")

    async def run() -> list[Message]:
        one = frame(socket, authentication_method="BASIC", penstock_authentication_users_file=str(users))
        talk = Talk({"type": "websocket.connect"})
        await one(scope_of("/ws", "websocket"), talk.receive, talk.send)
        return talk.sent

    assert asyncio.run(run())[0]["status"] == 401


def test_a_client_that_reads_no_more_of_a_download_is_given_up() -> None:
    ends = []

    class Stalled(Talk):
        async def send(self, message: Message) -> None:
            if message.get("body") == b"more":
                await self.may_end.wait()
            await super().send(message)

    async def download(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            for chunk in (b"first", b"more", b"last"):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            ends.append(True)

    async def run() -> list[Message]:
        talk = Stalled()
        service = frame(download, penstock_request_timeout_ms="20")
        await asyncio.wait_for(service(scope_of("/a/file"), talk.receive, talk.send), 30)
        return talk.sent

    assert [each.get("body") for each in asyncio.run(run())] == [None, b"first"]
    assert ends == [True]
