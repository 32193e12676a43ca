"""What Python and the compiled walks of compaction tell each other: the words of their arrays, and why they stopped.

The walks have these numbers compiled into them: MADE_FROM of map_kernels and of filter_kernels must change with an edit here.
"""

import numpy as np
from numba import int64, types, uint8

Words = np.ndarray[tuple[int], np.dtype[np.int64]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

BYTES_IN = types.Array(uint8, 1, "C", readonly=True)
BYTES_OUT = uint8[::1]
STATE = int64[::1]
TABLE = int64[:, ::1]

# Why a walk stopped
DONE = 0  # fewer bytes are left than the next batch needs: state[NEEDED], 0 when that is not known
SPECIAL = 1  # compressed, transactional or control
CORRUPT = 2
MAP_FULL = 3
SCRATCH_SMALL = 4  # state[NEEDED] records are in the batch
OUT_FULL = 5  # state[NEEDED] bytes must be free

# The words of `state`
POSITION, NEEDED, ENTRIES, LATEST_OFFSET = 0, 1, 2, 3
OUT_POSITION, FILE_POSITION, SINCE_ENTRY, MAX_TIMESTAMP, MAX_TIMESTAMP_OFFSET, LAST_TIME_ENTRY = (
    4,
    5,
    6,
    7,
    8,
    9,
)
OFFSET_ENTRIES, TIME_ENTRIES = 10, 11
RECORDS_READ, RECORDS_KEPT, NULL_KEYS, LAST_OFFSET = 12, 13, 14, 15
KEPT_TOMBSTONES, KEPT_MAX_TIMESTAMP = 16, 17
STATE_WORDS = 18

# The rows of `scratch`
START, TIMESTAMP_END, END, OFFSET, TIMESTAMP, HASH_LOW, HASH_HIGH, FLAGS, TIMESTAMP_START = range(9)
SCRATCH_ROWS = 9
HAS_KEY, HAS_VALUE, KEEP = 1, 2, 4

# The options of a filter
NOW, DELETE_HORIZON, UPPER_BOUND, BASE_OFFSET, INDEX_INTERVAL = range(5)
OPTION_WORDS = 5

# Of a batch
HEADER = 61
SPECIAL_BITS = 0x37  # of its attributes: control, transactional, codec
