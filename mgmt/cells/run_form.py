"""Common part of the forms that start a run over a range of ingest times."""

from typing import Any, Final

from django import forms

from mgmt.deliveries.cause_wording import capitalised

TIME_FORMATS: Final = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M")


class RunForm(forms.Form):
    """Form with the fields `since` and `until`, which browsers show as local times."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for name in ("since", "until"):
            widget = forms.DateTimeInput({"class": "form-control", "type": "datetime-local"}, format=TIME_FORMATS[1])
            self.fields[name].widget = widget

    def add_refusal(self, field: str, reason: str) -> None:
        """Add what the service needs of a field, at that field."""
        self.add_error(field if field in self.fields else None, f"{capitalised(reason).removesuffix('.')}.")
