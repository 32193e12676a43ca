"""synchronous.py without a client library: one prepared Produce request per socket, sent again and again.

One thread waits for all sockets, so that what is seen is the server and the kernel, hardly the client. A
latency is from send() until the whole answer is there.
"""

import select
import socket
import time

from bench.clients.options import print_result, read_options
from bench.measure import percentile
from bench.raw import NO_ERROR, produce_error, produce_request, receive_frame, record_batch

ANSWER_TIMEOUT_S = 30
VALUE = bytes(range(100))


def main() -> None:
    options = read_options()
    host, port = options["bootstrap"].split(":")
    topic = options["topic"]
    request = produce_request(topic, record_batch(VALUE, timestamp_ms=time.time_ns() // 1_000_000))
    sockets: dict[int, socket.socket] = {}
    sent_at: dict[int, float] = {}
    poll = select.epoll()
    for _ in range(options["producer_count"]):
        sock = socket.create_connection((host, int(port)), timeout=ANSWER_TIMEOUT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[sock.fileno()] = sock
        poll.register(sock, select.EPOLLIN)
    clock = time.perf_counter
    warm_until = clock() + options["warm_up_s"]
    until = warm_until + options["seconds"]
    for number, sock in sockets.items():
        sent_at[number] = clock()
        sock.sendall(request)
    latencies: list[float] = []
    while (now := clock()) < until:
        ready = poll.poll(ANSWER_TIMEOUT_S)
        if not ready:
            raise SystemExit(f"no answer within {ANSWER_TIMEOUT_S} s")
        for number, _ in ready:
            sock = sockets[number]
            answer = receive_frame(sock)
            now = clock()
            if code := produce_error(answer, topic):
                raise SystemExit(f"not acknowledged: error {code}, expected {NO_ERROR}")
            if sent_at[number] >= warm_until:
                latencies.append((now - sent_at[number]) * 1000)
            sent_at[number] = clock()
            sock.sendall(request)
    latencies.sort()
    print_result(
        p50_ms=percentile(latencies, 0.5),
        p99_ms=percentile(latencies, 0.99),
        request_count=len(latencies),
        requests_per_s=len(latencies) / options["seconds"],
    )


if __name__ == "__main__":
    main()
