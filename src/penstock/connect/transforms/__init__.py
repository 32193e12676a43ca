"""Transforms: a record on its way through Connect becomes another one, or is left out. With predicates, which say when.

    transforms=mask,route                     in this order, between a source and the converter, or the converter and a sink
    transforms.mask.type=org.apache.kafka.connect.transforms.MaskField$Value
    transforms.mask.fields=card
    transforms.route.type=…
    transforms.route.predicate=isOrder        only where it is true (or false, with `negate`)
    predicates=isOrder
    predicates.isOrder.type=…

`chain` makes them of a configuration and applies them. A file for each of Kafka's; `debezium` has those of Debezium that people
use; `python` is a function of one's own. What each does is Kafka's, on structs and on maps without a schema; the tests compare it
with Kafka's own. What it makes of a schema is kept (`sides.BySchema`), so a record costs a microsecond or few.

Pure: no sockets, no clock. Differences to Kafka, on purpose:
    a mask for a decimal has the decimal's scale, and a date that is cast as a whole is no date any more (Kafka's fail in the
        converter)
    a pattern for times that is none is refused at the start, also by TimestampRouter
    two digits of a year are those of 1946 to 2045, whenever they are read
    times go from the year 1 to 9999, with today's calendar for all of them
"""
