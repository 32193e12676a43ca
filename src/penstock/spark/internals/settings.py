"""Settings of Spark's that no manual has. Measured, each by itself, against what Spark does without being told.

Spark takes a name that it does not know without a word: the canary asks for each whether there still is such a setting.
"""

from __future__ import annotations

CHECKPOINT_FILE_MANAGER_SETTING = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINT_FILE_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

QUICK_SETTINGS = {
    # Spark's default forks a process several times for each batch, to read symbolic links: half of a small batch.
    CHECKPOINT_FILE_MANAGER_SETTING: CHECKPOINT_FILE_MANAGER,
    # Python workers over a loopback connection wait for delayed acknowledgements.
    "spark.python.unix.domain.socket.enabled": "true",
    # How long rows wait for company before the next stage of a real-time query gets them: 50 ms by default.
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "2",
    # How often a query without input looks for some: 10 ms by default, a core for thirty queries.
    "spark.sql.streaming.pollingDelay": "100ms",
}
DAEMON = {"spark.python.daemon.module": "penstock.spark.internals.daemon"}
# Which Spark has it first, where that is not the oldest that we support; older ones pass over it.
SINCE = {"spark.shuffle.streaming.networkBufferMaxWaitTimeMs": (4, 3)}
