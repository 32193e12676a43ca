"""A small service of the tests' own in the frame: `echo_program.py PROPERTIES`."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.client.property_files import read_properties
from penstock.web.call import Answer, Call, Stream
from penstock.web.errors import HttpError
from penstock.web.options import load
from penstock.web.routes import Routes
from penstock.web.service import Running, WebService
from penstock.web.serving import serve
from penstock.web.sockets import Socket

routes = Routes()
entered = asyncio.Event()


@routes.get("/echo/{word}", "The word again.", query={"times": "how often"})
async def echo(call: Call) -> object:
    return {"word": call["word"] * call.number("times", 1), "by": str(call.principal)}


@routes.post("/echo", "The body again.", body="any JSON")
async def echo_body(call: Call) -> object:
    return await call.json()


@routes.get("/wait", "Until the client or the frame has enough.")
async def wait(call: Call) -> object:
    await asyncio.sleep(float(call.query("seconds") or 0))
    return {"waited": True}


@routes.get("/stream", "Three chunks.")
async def stream(call: Call) -> Stream:
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d\n" % number

    return Stream(chunks())


@routes.get("/large", "Many bytes.")
async def large(call: Call) -> Stream:
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(call.number("chunks", 1)):
            yield bytes([number % 256]) * 100_000

    return Stream(chunks())


async def echo_socket(call: Call, socket: Socket) -> None:
    await socket.accept()
    await socket.send(f"{call.query('word')} by {call.principal}")
    if call.query("bug"):
        raise ZeroDivisionError("secret")
    if call.query("wait"):
        await socket.left()
    await socket.close(1000, "done")


@routes.get("/refused", "Never.")
async def refused(call: Call) -> Answer:
    raise HttpError(404, "Word not found.", error_code=40401)


@routes.get("/bug", "Never.")
async def bug(call: Call) -> Answer:
    raise ZeroDivisionError("secret")


@asynccontextmanager
async def lifecycle(running: Running) -> AsyncIterator[None]:
    print("begun", flush=True)
    yield
    print("ended", flush=True)


if __name__ == "__main__":
    service = WebService(name="echo", title="Echo", routes=routes, lifecycle=lifecycle, has_http2=True,
                         sockets={"/echo-socket": echo_socket})  # fmt: skip
    loaded = load(read_properties(sys.argv[1]))
    sys.exit(serve(service, loaded.web, tell=lambda line: print(line, flush=True)))
