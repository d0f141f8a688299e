"""The control plane as a Django application: it owns the commands that act on cells."""

from django.apps import AppConfig


class ControlplaneConfig(AppConfig):
    """Commands only; the rows that the control plane works with belong to `mgmt`."""

    name = "controlplane"
