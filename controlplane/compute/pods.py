"""Cells on Kubernetes, as data: the Deployment of a cell, and the Spark settings of its application. Pure.

A cell's Deployment has one pod. In it runs a keeper with one desired application, whose executors are further pods.
"""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from controlplane.compute.port import DesiredApplication

MASTER: Final = "k8s://"  # prefix of a master on Kubernetes; the address of its API server follows
TEMPLATES: Final = Path("/etc/penstock/cells")  # where the pods find the two files of deploy/kubernetes/cells
CELL_LABEL: Final = "penstock-cell"
DESIRED_ANNOTATION: Final = "penstock-wish"  # annotation with the desired application
PYTHON_MB: Final = 1_024  # for a lane's Python worker, in addition to its executor's JVM
EXECUTOR_CPU: Final = "250m"  # requested for a lane: most lanes wait, and a busy one uses more CPU if it is free


class PodContext(Struct, frozen=True):
    """Data about the pod of this process that it needs to ask for further pods."""

    name: str
    namespace: str
    ip: str
    image: str


def pod_from(env: Mapping[str, str]) -> PodContext | None:
    """Read POD_NAME, POD_NAMESPACE, POD_IP and POD_IMAGE; None without POD_NAME. Raises KeyError for the others."""
    if "POD_NAME" not in env:
        return None
    return PodContext(env["POD_NAME"], env["POD_NAMESPACE"], env["POD_IP"], env["POD_IMAGE"])


def name_of(cell: str) -> str:
    """Return the name of a cell's Deployment."""
    return f"cell-{cell}"


def deployment(template: Mapping[str, Any], desired: DesiredApplication, pod: PodContext) -> dict[str, Any]:
    """Return the template filled in for this application. The cell gets the image of `pod`, the caller's.

    The desired application is in the pod's arguments, so that a change replaces the pod: by the template's strategy the
    old pod drains before the next one starts.
    """
    filled: dict[str, Any] = deepcopy(dict(template))
    encoded = msgspec.json.encode(desired).decode()
    label = {CELL_LABEL: desired.cell}
    inner = filled["spec"]["template"]
    filled["metadata"] |= {
        "name": name_of(desired.cell),
        "namespace": pod.namespace,
        "annotations": {DESIRED_ANNOTATION: encoded},
        "labels": filled["metadata"]["labels"] | label,
    }
    filled["spec"]["selector"]["matchLabels"] |= label
    inner["metadata"]["labels"] |= label
    container = inner["spec"]["containers"][0]
    container |= {"image": pod.image, "args": ["--desired", encoded]}
    container["env"].append({"name": "POD_IMAGE", "value": pod.image})
    return filled


def desired_in(manifest: Mapping[str, Any]) -> DesiredApplication | None:
    """Return the desired application of a Deployment; None if it is not valid, so that the next submit replaces it."""
    try:
        return msgspec.json.decode(manifest["metadata"]["annotations"][DESIRED_ANNOTATION], type=DesiredApplication)
    except (KeyError, msgspec.DecodeError):
        return None


def spark_conf(cell: str, incarnation: str, pod: PodContext) -> dict[str, str]:
    """Return the Spark settings, in addition to cluster_conf, for a driver in this pod and executors in pods.

    They keep the driver's rights small: it needs no config maps, volumes or services.
    """
    return {
        "spark.driver.host": pod.ip,
        "spark.executor.memoryOverhead": f"{PYTHON_MB}m",
        # otherwise Spark would end the application after 32 lost executors in its whole lifetime
        "spark.executor.failuresValidityInterval": "10m",
        "spark.kubernetes.namespace": pod.namespace,
        "spark.kubernetes.container.image": pod.image,
        "spark.kubernetes.driver.pod.name": pod.name,  # owns the executors: they are deleted with it in any case
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.executor.podTemplateFile": str(TEMPLATES / "executor.yaml"),
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
        "spark.kubernetes.executor.podNamePrefix": f"{name_of(cell)}-{incarnation[:8]}",
        "spark.kubernetes.executor.request.cores": EXECUTOR_CPU,
        f"spark.kubernetes.executor.label.{CELL_LABEL}": cell,
    }
