"""PySpark's daemon of Python workers with the code of lanes imported: a lane starts as fast as a process forks.

Spark runs it as `python -m dataplane.jobs.worker_daemon pyspark.worker` (`spark.python.daemon.module`). It forks, so its
imports must start no thread; PySpark's own daemon imports nothing for that reason.
"""

import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's library would start threads

import pyspark.worker  # noqa: E402
from pyspark.daemon import manager  # noqa: E402

import dataplane.jobs.lanes  # noqa: E402
import dataplane.process.work  # noqa: E402
import dataplane.retrier.work  # noqa: E402
import dataplane.runtime.lookups  # noqa: E402
import dataplane.transmit.work  # noqa: E402, F401

if __name__ == "__main__":
    gc.freeze()  # the collector of a worker leaves the pages alone that it shares with the daemon
    manager()
