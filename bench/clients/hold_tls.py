"""Holds many idle TLS connections: opens them, says so on a line, and asks each for the versions when a line comes in.

Its result is how many of them were answered both times.
"""

import json
import socket
import ssl
import sys
import time

from bench.clients.options import print_result, read_options
from bench.raw import receive_frame
from bench.swarm import ask
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

TIMEOUT_S = 60.0


def main() -> None:
    options = read_options()
    host, port = options["address"].split(":")
    context = ssl.create_default_context(cafile=options["trusted"])
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    question = ask(ApiVersionsRequest(), ApiVersionsResponse, 0).frame
    began = time.perf_counter()
    held: list[ssl.SSLSocket] = []
    for _ in range(options["count"]):
        plain = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        sock = context.wrap_socket(plain, server_hostname=host)
        sock.sendall(question)
        receive_frame(sock)
        held.append(sock)
    print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
    sys.stdin.readline()
    answered = 0
    for sock in held:
        try:
            sock.sendall(question)
            answered += bool(receive_frame(sock))
        except OSError:
            continue
    for sock in held:
        sock.close()
    print_result(answered=answered)


if __name__ == "__main__":
    main()
