"""Reads a partition from its beginning again and again, as fast as the server gives it, and drops the bytes.

Bare Fetch requests: what is seen is the load of a reader on the server, hardly the reader's own. The files named in the
options leave the page cache before each pass. Ends when its standard input does.
"""

import select
import socket
import sys
from pathlib import Path

from bench.clients.options import print_result, read_options
from bench.log_files import drop_from_page_cache
from bench.raw import fetch_request, fetched_records, receive_frame
from penstock.records.batch import iterate_headers

ANSWER_TIMEOUT_S = 60


def told_to_end() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def main() -> None:
    options = read_options()
    host, port = options["bootstrap"].split(":")
    topic, end_offset = options["topic"], options["end_offset"]
    files = [Path(name) for name in options["files"]]
    total, passes = 0, 0
    with socket.create_connection((host, int(port)), timeout=ANSWER_TIMEOUT_S) as sock:
        while not told_to_end():
            drop_from_page_cache(files)
            offset = 0
            while offset < end_offset and not told_to_end():
                sock.sendall(fetch_request(topic, offset))
                error, records = fetched_records(receive_frame(sock), topic)
                if error:
                    raise SystemExit(f"offset {offset}: error {error}")
                total += len(records)
                offset = next_offset(records, offset)
            passes += offset >= end_offset
    print_result(bytes=total, passes=passes)


def next_offset(records: memoryview, offset: int) -> int:
    for _, header in iterate_headers(records):
        offset = header.last_offset + 1
    return offset


if __name__ == "__main__":
    main()
