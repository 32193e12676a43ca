"""What Python and the compiled decoders of Avro tell each other: the words of the tables, the operations of a program, and why
a value was not read.

The decoders have these numbers compiled into them: MADE_FROM of avro_kernel.py must change with an
edit here.
"""

# The words of a column, one row of the table `columns` each. Addresses are of memory that numpy owns.
COUNT, USED, CAPACITY, DATA_CAPACITY, VALIDITY, VALUES, DATA, SHAPE = range(8)
COLUMN_WORDS = 8
# SHAPE is the column's storage, and above it (<< 8) the number of the column that it is in; -1: none
NOTHING, BYTE, FOUR, EIGHT, SIXTEEN, VARIABLE, LIST, STRUCT = range(8)

# How a call of the decoder ended; state[LACKING] is the column without room: for state[NEEDED]
# bytes of data, or for another entry
DONE, ROOM = 0, 1
NEXT_ROW, LACKING, NEEDED = 0, 1, 2
STATE_WORDS = 4

# Operations, with what stands behind them
RETURN = 0
NULLS = 1  # first, count in `lists`: columns that have no value here
THERE = 2  # column: a struct that is there
BOOLEAN = 3  # column
INT = 4  # column: four bytes
LONG = 5  # column, factor: eight bytes
LONG_AS_FLOAT = 6  # column
LONG_AS_DOUBLE = 7  # column
FLOAT = 8  # column
FLOAT_AS_DOUBLE = 9  # column
DOUBLE = 10  # column
BYTES = 11  # column, whether it must be UTF-8
FIXED = 12  # column, size
ENUM = (
    13  # column, first in `lists`, count: pairs of start and size in `constants`; a start of -1 is not known
)
DECIMAL = 14  # column, size or -1, high and low word of what is too large
UNION = 15  # first in `lists`, count: where each branch begins
OPTIONAL = 16  # number of the branch null, first and count as NULLS, where to go on when it is null
JUMP = 17  # where
LIST_OPEN = 18  # where to go on when it is empty, smallest size of an item
LIST_NEXT = 19  # where an item begins, smallest size of an item
LIST_CLOSE = 20  # column, column of the items
SKIP_VARINT = 21
SKIP = 22  # size
SKIP_BYTES = 23
CALL = 24  # where: until RETURN
CONSTANT = 25  # start and size in `constants`, where: until RETURN these are what is read
FAIL = 26  # reason
OPERATION_WORDS = 5

# Entries of rows that are not read
IS_NULL, IS_NOT_FRAMED, HAS_UNKNOWN_SCHEMA = -1, -2, -3

# Reasons
READ, ENDS_EARLY, BAD_LENGTH, BAD_BRANCH, BAD_SYMBOL, NOT_UTF8, TOO_MANY_ITEMS, TOO_DEEP = range(8)
OUT_OF_RANGE, NOT_RESOLVED, TOO_LARGE, NOT_FRAMED, UNKNOWN_SCHEMA, MISSING_VALUE = range(8, 14)

STACK_WORDS = 1024
ITEMS_WITHOUT_BYTES = 4096  # of one value: what takes no byte is not bounded by how many bytes there are
LARGEST_DATA = 1 << 30
