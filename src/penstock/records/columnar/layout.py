"""What Python and the compiled walk over batches tell each other: the words of its arrays, and why it stopped.

The walk has these numbers compiled into it: MADE_FROM of kernels and of transaction_kernels must change with an edit here.
"""

# Why the walk stopped
DONE = 0  # what is left is not a whole batch, or lies behind the last wanted offset
COMPRESSED = 1  # the batch at state[POSITION] is sound and wanted: Python opens it, for decode_payload
ROOM = 2  # state[LACKING] says which columns are too small
FULL = 3  # the columns hold as much as they should: take them and go on
INVALID = 4  # state[REASON] and state[BAD_OFFSET]

# The words of `state`
POSITION, NEXT_OFFSET, ROWS, KEY_BYTES, VALUE_BYTES = range(5)
HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES = 5, 6, 7
LACKING, REASON, BAD_OFFSET = 8, 9, 10
NEXT_ABORTED, OPEN_ABORTED = 11, 12
STATE_WORDS = 13

# The words of `options`
PARTITION, START_OFFSET, END_OFFSET, WANTED, MAX_ROWS, MAX_BYTES, SKIP_ABORTED = range(7)
OPTION_WORDS = 7

# The bits of options[WANTED], and of state[LACKING] for the columns that may run out of room
WANT_KEY, WANT_VALUE, WANT_HEADERS = 1, 2, 4
LACKS_KEYS, LACKS_VALUES, LACKS_HEADERS, LACKS_HEADER_KEYS, LACKS_HEADER_VALUES, LACKS_ROWS = (
    1,
    2,
    4,
    8,
    16,
    32,
)

# The rows of the numbers: `longs`, `ints`, `flags` have one column per record, `header_ints` one per record header
OFFSETS, TIMESTAMPS = 0, 1
PARTITIONS, TIMESTAMP_TYPES, KEY_ENDS, VALUE_ENDS, HEADER_ENDS = range(5)
HAS_KEY, HAS_VALUE, HAS_HEADERS = range(3)
HEADER_KEY_ENDS, HEADER_VALUE_ENDS = 0, 1

# What can be wrong
NOT_FORMAT_2, WRONG_CRC, WRONG_COUNT, WRONG_LENGTH, FIELD_PASSES_END = 1, 2, 3, 4, 5
HEADER_WITHOUT_KEY, HEADER_KEY_NOT_UTF8, OFFSET_OUTSIDE, BYTES_LEFT, WRONG_MARKER = 6, 7, 8, 9, 10
