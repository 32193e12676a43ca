"""Logins over TLS with SCRAM-SHA-512 on bare sockets, in threads: connect, handshakes, the exchange, close.

The password is salted once, since every user here has the same salt as soon as it is the same user: what a client spends on
PBKDF2 is not the broker's. Ends after `count` logins, or after `seconds`.
"""

import base64
import hashlib
import hmac
import os
import secrets
import socket
import ssl
import struct
import threading
import time
from functools import lru_cache

from bench.clients.options import print_result, read_options
from bench.raw import receive_frame

TIMEOUT_S = 60.0
HANDSHAKE, AUTHENTICATE = (17, 1), (36, 1)
MECHANISM = "SCRAM-SHA-512"


@lru_cache
def salted(password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha512", password.encode(), salt, iterations)


def ask(sock: socket.socket, api: tuple[int, int], body: bytes) -> bytes:
    """The answer behind its correlation id, whose error code must be 0."""
    content = struct.pack(">hhih", *api, 1, 5) + b"bench" + body
    sock.sendall(struct.pack(">i", len(content)) + content)
    answer = receive_frame(sock)
    (error,) = struct.unpack_from(">h", answer, 4)
    if error:
        raise SystemExit(f"the broker refused API {api[0]} with error {error}: {answer!r}")
    return answer[6:]


def authenticate(sock: socket.socket, token: bytes) -> str:
    answer = ask(sock, AUTHENTICATE, struct.pack(">i", len(token)) + token)
    at = 2 + max(0, struct.unpack_from(">h", answer)[0])  # behind the error message
    (size,) = struct.unpack_from(">i", answer, at)
    return answer[at + 4 : at + 4 + size].decode()


def log_in(sock: socket.socket, user: str, password: str) -> None:
    ask(sock, HANDSHAKE, struct.pack(">h", len(MECHANISM)) + MECHANISM.encode())
    first = f"n={user},r={secrets.token_urlsafe(16)}"
    server_first = authenticate(sock, f"n,,{first}".encode())
    given = dict(part.split("=", 1) for part in server_first.split(","))
    secret = salted(password, base64.b64decode(given["s"]), int(given["i"]))
    client_key = hmac.digest(secret, b"Client Key", "sha512")
    bare = f"c=biws,r={given['r']}"
    signed = f"{first},{server_first},{bare}".encode()
    signature = hmac.digest(hashlib.sha512(client_key).digest(), signed, "sha512")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    proven = dict(part.split("=", 1) for part in authenticate(sock, f"{bare},p={proof}".encode()).split(","))
    server_key = hmac.digest(secret, b"Server Key", "sha512")
    if base64.b64decode(proven["v"]) != hmac.digest(server_key, signed, "sha512"):
        raise SystemExit("the broker did not prove that it knows the user")


def main() -> None:
    options = read_options()
    if options.get("is_nice"):
        os.nice(19)
    host, port = options["address"].split(":")
    context = ssl.create_default_context(cafile=options["trusted"])
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    users, password = options["users"], options["password"]
    lock = threading.Lock()
    begun = ended = 0
    failures: list[BaseException] = []
    began = time.perf_counter()

    def next_number() -> int | None:
        nonlocal begun
        with lock:
            is_over = begun >= options.get("count", 1 << 30)
            if is_over or failures or time.perf_counter() - began > options.get("seconds", TIMEOUT_S):
                return None
            begun += 1
            return begun

    def work() -> None:
        nonlocal ended
        try:
            while (number := next_number()) is not None:
                with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as plain:
                    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    with context.wrap_socket(plain, server_hostname=host) as sock:
                        log_in(sock, users[number % len(users)], password)
                with lock:
                    ended += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(options["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(f"a login failed: {failures[0]!r}")
    print_result(seconds=time.perf_counter() - began, count=ended)


if __name__ == "__main__":
    main()
