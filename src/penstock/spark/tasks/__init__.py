"""Long tasks: Python programs that run as the tasks of a Spark job which does not end by itself.

    from penstock.spark.tasks import LongJob, SparkLauncher

    job = LongJob(body, tasks=4, name="orders", launcher=SparkLauncher(spark))
    job.start()

The one path: `job.LongJob` starts a job by a launcher (`launching`: Spark, processes of this machine, threads) and watches
over it. In each task `program.Program` calls the body with a `control.Control`, which reports to the driver's `board.Board`
over a socket (`frames`) and hears what is asked of the task: stop, pause, resume, questions. `states` is the table of states.

Promises: a body that raises is called again after a pause that grows; a process that dies is started again, as often as it
takes; a task that is asked to stop may finish what it is at before it is cancelled; a task that loses its driver ends. Only who
has the job's secret is heard. Not promised: that two attempts of one task never overlap. Whoever writes must fence.
"""

from penstock.spark.tasks.control import Control
from penstock.spark.tasks.failures import Hopeless
from penstock.spark.tasks.job import LongJob
from penstock.spark.tasks.launching import ProcessLauncher, SparkLauncher, ThreadLauncher
from penstock.spark.tasks.states import JobState, TaskError, TaskView

__all__ = [
    "LongJob", "Control", "Hopeless", "JobState", "TaskError", "TaskView",
    "SparkLauncher", "ProcessLauncher", "ThreadLauncher",
]  # fmt: skip
