"""Compute on Kubernetes: a Deployment per application, kept running by Kubernetes while the control plane is down."""

from pathlib import Path

import yaml
from msgspec import Struct

from controlplane.compute.api_server import ApiServer
from controlplane.compute.pods import TEMPLATES, PodContext, deployment, desired_in, name_of
from controlplane.compute.port import ComputeObservation, DesiredApplication


class KubernetesCompute(Struct, frozen=True):
    """Compute adapter for an API server.

    Running applications are not observed here: heartbeats report them for every cell.

    pod:       the pod of the calling process
    templates: deploy/kubernetes/cells, mounted as a volume
    """

    api: ApiServer
    pod: PodContext
    templates: Path = TEMPLATES

    def submit(self, desired: DesiredApplication) -> None:
        """Apply the cell's Deployment, unless it already describes this application. Raises ComputeError."""
        if self.observe(desired.cell).desired != desired:
            template = yaml.safe_load((self.templates / "cell.yaml").read_text())
            self.api.apply(self._path(desired.cell), deployment(template, desired, self.pod))

    def stop(self, cell: str) -> None:
        """Delete the Deployment; its pod drains on SIGTERM. Raises ComputeError."""
        self.api.delete(self._path(cell))

    def observe(self, cell: str) -> ComputeObservation:
        """Read the Deployment. Raises ComputeError."""
        found = self.api.get(self._path(cell))
        return ComputeObservation(desired_in(found) if found else None, None)

    def _path(self, cell: str) -> str:
        return f"/apis/apps/v1/namespaces/{self.pod.namespace}/deployments/{name_of(cell)}"
