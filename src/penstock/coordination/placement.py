"""Which partition of its internal topic a coordinator keeps a key in. Kafka's rule, so that both read each other's
files."""


def partition_for(key: str, count: int) -> int:
    """`abs(hashCode) % count` with Java's hash of a string (over UTF-16 units) and 0 for the one int without
    abs."""
    code = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    if code == 0x80000000:
        return 0
    return (code if code < 0x80000000 else 0x100000000 - code) % count
