"""Spark standalone: an application's settings for a cluster, and the commands of the cluster's own processes.

Spark's dynamic allocation adds and removes executors with lanes; a new host only needs a worker.
Executors inherit their worker's environment: PENSTOCK_VAR, Kafka's address and secrets are set where workers start,
never on a command line.
"""

from pathlib import Path
from typing import Final

from controlplane.compute.processes import INCARNATION_VARIABLE
from dataplane.names import LANE_KINDS

EXECUTORS: Final = 16
MOST_SPARE: Final = EXECUTORS - len(LANE_KINDS)
CORES: Final = 1  # of one executor, so that each removed lane frees an executor
EXECUTOR_MB: Final = 512


def cluster_conf(master: str, incarnation: str, spare: int = 0) -> dict[str, str]:
    """Return the Spark settings of an application on this master; none for a local one, which needs none.

    spare: executors that are kept in addition to one for a lane of each kind; a lane whose executor is lost continues
           on one that is idle, while another one starts
    """
    if master.startswith("local"):
        return {}
    kept = {"spark.dynamicAllocation.minExecutors": str(len(LANE_KINDS) + spare)} if spare else {}
    return kept | {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",  # there is no shuffle service
        "spark.dynamicAllocation.maxExecutors": str(EXECUTORS),
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        "spark.dynamicAllocation.executorIdleTimeout": "10s",
        "spark.executor.cores": str(CORES),
        "spark.executor.memory": f"{EXECUTOR_MB}m",
        "spark.task.maxFailures": "1000",  # a lane's task is retried as long as the application runs
        f"spark.executorEnv.{INCARNATION_VARIABLE}": incarnation,
    }


def master_command(spark_home: Path, *, host: str, port: int, web_port: int) -> list[str]:
    """Return the command of the cluster's master."""
    where = ["--host", host, "--port", str(port), "--webui-port", str(web_port)]
    return [str(spark_home / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master", *where]


def worker_command(spark_home: Path, master: str, *, host: str, cores: int, memory_mb: int, work: Path) -> list[str]:
    """Return the command of a worker of the master at this URL, on ports that it chooses itself."""
    what = ["--host", host, "--webui-port", "0", "--cores", str(cores), "--memory", f"{memory_mb}m"]
    program = [str(spark_home / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker"]
    return [*program, *what, "--work-dir", str(work), master]
