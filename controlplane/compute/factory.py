"""Chooses the adapter of the compute port for a Spark master."""

from collections.abc import Mapping
from pathlib import Path

from controlplane.compute.api_server import ApiServer
from controlplane.compute.kubernetes import KubernetesCompute
from controlplane.compute.local import LocalCompute
from controlplane.compute.pods import MASTER, pod_from
from controlplane.compute.port import Compute


def compute_at(master: str, var: Path, env: Mapping[str, str]) -> Compute:
    """Return the adapter: Kubernetes for k8s://https://..., which works only in a pod; else the keeper on this host.

    Raises ValueError if a Kubernetes master is used outside of a pod, and KeyError if a variable of the pod is missing.
    """
    if not master.startswith(MASTER):
        return LocalCompute(var)
    pod = pod_from(env)
    if pod is None:
        raise ValueError(f"PENSTOCK_CELL_MASTER: {master} needs POD_NAME and its like, so a pod, to be asked from")
    return KubernetesCompute(ApiServer(master.removeprefix(MASTER)), pod)
