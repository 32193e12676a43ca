"""Protobuf schemas, versions 2 and 3.

The path of a text:

    tokens → reading → elements            what is written, in the order that the canonical text has
    elements → writing                     the canonical text, as Confluent's registry prints it
    elements → describing → linking        a FileDescriptorProto with full names, checked and put into a pool of its own
    elements → normalizing                 names in full, everything sorted

A schema that comes as a serialized FileDescriptorProto goes through `undescribing` to elements, and then the same way.

`compatibility` compares descriptors, by Confluent's rules. `values` reads and writes messages; `indexes` says which of a file's
messages a value is.

Promised: the canonical text of a canonical text is itself, and means the same messages. What is imported must be among the
references, or be one of the files that everybody has (`well_known`). Not promised: editions; weak imports are kept as plain
ones.
"""
