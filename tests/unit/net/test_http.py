"""The little HTTP that a scraper needs, over real sockets."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from penstock.net.http import MAX_CONNECTIONS, MAX_REQUEST_BYTES, HttpResponder, Page
from penstock.net.listener import bind

Client = Callable[[int], Awaitable[None]]
GET = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"


async def _page() -> Page:
    return Page("text/plain", b"up 1\n")


def serve(
    client: Client,
    make_page: Callable[[], Awaitable[Page]] = _page,
    *,
    request_seconds: float = 5.0,
    answer_seconds: float = 5.0,
) -> None:
    async def main() -> None:
        sock = bind("127.0.0.1", 0)
        port = sock.getsockname()[1]
        responder = HttpResponder(
            "/metrics", make_page, request_seconds=request_seconds, answer_seconds=answer_seconds
        )
        await responder.start(sock)
        try:
            async with asyncio.timeout(60):
                await client(port)
        finally:
            await responder.stop()

    asyncio.run(main())


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()  # up to the end: the responder closes
    finally:
        writer.close()
        await writer.wait_closed()


def answer_to(request: bytes) -> bytes:
    answers: list[bytes] = []

    async def client(port: int) -> None:
        answers.append(await ask(port, request))

    serve(client)
    return answers[0]


@pytest.mark.parametrize(
    "request_bytes",
    [
        GET,
        b"GET /metrics?name=up HTTP/1.0\r\n\r\n",
        b"GET http://here:9404/metrics HTTP/1.1\r\nHost: here\r\n\r\n",
    ],
)
def test_the_page_is_served_and_the_connection_closed(request_bytes: bytes) -> None:
    answer = answer_to(request_bytes)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Type: text/plain\r\n" in answer
    assert b"Content-Length: 5\r\n" in answer
    assert answer.endswith(b"\r\n\r\nup 1\n")


def test_head_gets_the_length_without_the_page() -> None:
    answer = answer_to(GET.replace(b"GET", b"HEAD"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 5\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_another_path_is_not_found() -> None:
    assert answer_to(b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"OPTIONS"])
def test_another_method_is_not_allowed(method: bytes) -> None:
    answer = answer_to(method + b" /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"Allow: GET, HEAD\r\n" in answer


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"hello\r\n\r\n",
        b"GET /metrics\r\n\r\n",
        b"GET /metrics HTTP/2.0\r\n\r\n",
        b"GET metrics HTTP/1.1\r\n\r\n",
        b"GET  /metrics HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n",
        b"\r\n\r\n",
        b"\x00\x00\x00\x1d\x00\x12\x00\x03"
        + b"\xff" * 40
        + b"\r\n\r\n",  # Kafka's protocol at the wrong port
    ],
)
def test_what_is_no_request_is_refused(request_bytes: bytes) -> None:
    assert answer_to(request_bytes).startswith(b"HTTP/1.1 400 ")


def test_a_request_without_an_end_is_refused_when_it_is_too_long() -> None:
    async def client(port: int) -> None:
        answer = await ask(port, b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * (MAX_REQUEST_BYTES // 3))
        assert answer.startswith(b"HTTP/1.1 400 ")

    serve(client)


def test_a_client_that_asks_nothing_is_put_out() -> None:
    async def client(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /met")
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        writer.close()

    serve(client, request_seconds=0.05)


def test_clients_that_do_not_read_keep_nobody_else_out() -> None:
    large = Page(
        "text/plain", bytes(6 * 1024 * 1024)
    )  # more than the kernel holds for a client that does not read

    async def make_large() -> Page:
        return large

    async def client(port: int) -> None:
        idle = []
        for _ in range(MAX_CONNECTIONS):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", port))
            sock.sendall(GET)
            idle.append(sock)
        answer = b""
        while not answer.endswith(b"\0" * 1000):
            try:
                answer = await ask(port, GET)
            except ConnectionError:
                await asyncio.sleep(0.01)
        for sock in idle:
            sock.close()

    serve(client, make_large, answer_seconds=0.2)


def test_connections_past_the_bound_are_closed_at_once() -> None:
    go = asyncio.Event()

    async def slow() -> Page:
        await go.wait()
        return await _page()

    async def client(port: int) -> None:
        waiting = [asyncio.create_task(ask(port, GET)) for _ in range(MAX_CONNECTIONS + 5)]
        done, rest = set[asyncio.Task[bytes]](), set(waiting)
        while len(done) < 5:
            more, rest = await asyncio.wait(rest, return_when=asyncio.FIRST_COMPLETED)
            done |= more
        for task in done:
            assert isinstance(task.exception(), ConnectionError) or task.result() == b""
        go.set()
        for answer in await asyncio.gather(*rest):
            assert answer.startswith(b"HTTP/1.1 200 ")

    serve(client, slow)


def test_a_page_that_cannot_be_made_is_an_answer_too(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> Page:
        raise RuntimeError("no page")

    async def client(port: int) -> None:
        assert (await ask(port, GET)).startswith(b"HTTP/1.1 500 ")

    serve(client, broken)
    assert "no page" in caplog.text
