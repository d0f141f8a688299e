"""Progress and cancellation of redrives and releases. Shared by the pages of dead letters and held messages."""

from typing import Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from mgmt import services
from mgmt.deliveries.presenters import RedriveLine, redrive_line
from mgmt.deliveries.queries.delivery import redrives_of
from mgmt.deliveries.services.redrives import RATE_PER_S
from mgmt.models import Pipe, Redrive
from mgmt.web import access
from mgmt.web.rendering import for_members, viewer_of

MOST_SHOWN: Final = 5


class RedriveRateForm(forms.Form):
    """Rate of a redrive or release."""

    rate_per_s = forms.FloatField(
        label="Messages per second",
        help_text="Maximum, to protect the destination. The limits of its delivery settings also apply.",
        initial=RATE_PER_S,
        widget=forms.NumberInput({"class": "form-control", "inputmode": "decimal", "step": "any"}),
    )


@for_members
@require_POST
def abort_redrive(request: HttpRequest, pipe_id: str, move_id: str) -> HttpResponse:
    """Stop a redrive or release; messages that it has not reached stay where they are."""
    move = access.get_redrive(viewer_of(request), pipe_id, move_id, access.MOVE_MESSAGES)
    if services.cancel_redrive(move=move, by=viewer_of(request)):
        where = move.destination or "the pipe steps"
        words = f"Stopping the {move.what} to {where}. Remaining messages stay where they are."
        messages.success(request, words, "fine")
    return redirect("console:dead" if move.what == Redrive.What.REDRIVE else "console:held", pipe_id)


def latest_redrives(pipe: Pipe, what: str) -> list[RedriveLine]:
    """Return the newest redrives or releases, newest first."""
    return [redrive_line(row) for row in redrives_of(pipe=pipe).filter(what=what)[:MOST_SHOWN]]
