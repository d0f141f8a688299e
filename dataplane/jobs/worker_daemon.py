"""PySpark's daemon of Python workers with the code of lanes imported: a lane starts as fast as a process forks.

Spark runs it as `python -m dataplane.jobs.worker_daemon pyspark.worker` (`spark.python.daemon.module`). Its imports
must start no thread, because it forks; PySpark's own daemon imports nothing for that reason.
"""

import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's library would start threads

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import dataplane.jobs.lanes
import dataplane.process.work
import dataplane.retrier.work
import dataplane.runtime.lookups
import dataplane.transmit.work  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # the collector of a worker leaves the pages alone that it shares with the daemon
    manager()
