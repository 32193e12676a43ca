"""What runs in a long task: a source that is polled, or a sink that is put to, until it is to stop.

    source   poll → transforms → converters → producer; offsets behind what is delivered, or in one transaction with it
    sink     consumer group → converters → transforms → put → pre_commit → commit of those offsets

`program.TaskProgram` is sent to each task and called there with a `Control`. It runs `source.SourceWork` or `sink.SinkWork`, and
begins them anew when they fail (`restarting`). `assembly` makes the task, its converters and its transforms from the
configuration; `clients` has the settings of producers, consumers and admins; `offsets` is where sources keep where they were.
`failing` decides about a record that cannot be converted or written, and `dead_letters` keeps it.

Promises: an offset of a source is kept only behind its record and all before it; with `exactly.once.source.support=enabled` in
one transaction with them. An offset of a sink is committed only when `pre_commit` says so, and a dead letter is written before.
A task that another one of its name has replaced ends quietly. Not promised without transactions: that two attempts never
overlap.
"""

from penstock.connect.tasks.program import TaskProgram, TaskState
from penstock.connect.tasks.settings import WorkerSettings

__all__ = ["TaskProgram", "TaskState", "WorkerSettings"]
