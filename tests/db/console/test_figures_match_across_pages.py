"""Each number that is shown twice is the same on all pages and in the API: with retries, redrives and late facts.

The scenario has two minutes. The older one was sealed while two messages waited for a retry and three were dead. Since
then both retries delivered, one dead letter was redriven and delivered, and the retrier passed a third retry without a
record of it. The newer minute is open.
"""

import csv
import io
from dataclasses import dataclass
from datetime import datetime

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.observer.seal import seal_row
from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.deliveries.queries.message_selection import MessageSelection
from mgmt.ledger.queries.bucket_range import bucket_at, start_of
from mgmt.ledger.queries.ledger import accounts
from mgmt.models import Alert, HighOffset, LateCount, Pipe, SettledOffset, User
from mgmt.services import start_redrive
from tests.db.cast import MakeClient
from tests.db.console.truth import Truth, go_live
from tests.db.console.undelivered import open_alert, store_dead
from tests.support.page_figures import OUTCOMES, number, outcomes, outcomes_of, plain, table

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Scene:
    pipe: Pipe
    sealed: int
    open: int
    alert: Alert


def seal_now(pipe: Pipe, bucket: int) -> None:
    """Seal the bucket as the Observer does."""
    seal_row(pipe.id, bucket, accounts(pipe.id, [bucket])[bucket], timezone.now()).save(force_insert=True)


def retrier_passed(pipe: Pipe, bucket: int) -> None:
    topic = "penstock.c1.retry-in.g1"
    HighOffset.objects.create(pipe_id=pipe.id, bucket=bucket, topic=topic, partition=0, offset=5)
    SettledOffset.objects.create(topic=topic, partition=0, offset=6)


@pytest.fixture
def scene(pipe: Pipe, alice: User) -> Scene:
    go_live(pipe)
    now = timezone.now()
    truth, sealed, still_open = Truth(pipe), bucket_at(now) - 20, bucket_at(now) - 2
    truth.moved(sealed, list(range(10)))
    truth.passed(100)
    truth.fact(sealed, "transmit:crm", "delivered", [0, 1, 2, 3])
    truth.fact(sealed, "transmit:crm", "parked", [4, 5, 6], "1")
    truth.fact(sealed, "transmit:crm", "dead", [7, 8, 9], "rejected")
    seal_now(pipe, sealed)
    at = start_of(sealed)
    store_dead(pipe, range(7, 10), at)
    alert = open_alert(pipe, at)
    _go_on(pipe, truth, sealed, alice)
    truth.moved(still_open, list(range(20, 26)))
    truth.fact(still_open, "transmit:crm", "delivered", [20, 21])
    truth.fact(still_open, "transmit:crm", "parked", [22, 23], "1")
    truth.fact(still_open, "ingest", "sent", [30], "acked", partition=1)
    truth.fact(still_open, "normalize", "filtered", [30])
    return Scene(pipe, sealed, still_open, alert)


def _go_on(pipe: Pipe, truth: Truth, bucket: int, by: User) -> None:
    """Report what happened after the seal."""
    truth.fact(bucket, "transmit:crm", "delivered", [4, 5, 7], partition=1)
    truth.fact(bucket, "transmit:crm", "redriven", [7], "2", partition=1)
    retrier_passed(pipe, bucket)
    start_redrive(pipe=pipe, chosen=MessageSelection("crm", ids=("m7",)), by=by, through=True)
    for fact in ("delivered", "redriven", "released"):  # facts, not messages: far more than the minute has
        LateCount.objects.create(pipe_id=pipe.id, bucket=bucket, node="transmit:crm", fact=fact, count=7_000)


def text_of(browser: Client, path: str, **query: str) -> str:
    """Return a page without tags, with one space between texts."""
    answer = browser.get(path, query)
    assert answer.status_code == 200
    return plain(answer.content.decode())


def table_of(browser: Client, path: str, label: str, **query: str) -> list[dict[str, str]]:
    """Return the rows of the table in the region `label`, by heading; the foot's rows are included."""
    return table(browser.get(path, query).content.decode(), label)


def test_minutes_agree_on_the_pipe_page_the_minute_page_in_the_export_and_in_the_api(
    alices: Client, client_of: MakeClient, alice: User, scene: Scene
):
    path = f"/pipes/{scene.pipe.id}/"
    listed = client_of(alice).get(f"/api/v1{path}minutes/").json()["results"]
    assert [one["minute"] for one in listed] == [scene.open, scene.sealed]
    *rows, total = table_of(alices, path, "Loss by minute")
    text = b"".join(alices.get(path, {"format": "csv"}).streaming_content).decode()  # type: ignore[attr-defined]
    exported = list(csv.DictReader(io.StringIO(text)))
    for said, row, line in zip(listed, rows, exported, strict=True):
        one = client_of(alice).get(f"/api/v1{path}minutes/{said['minute']}/").json()
        losses = client_of(alice).get(f"/api/v1{path}minutes/{said['minute']}/losses/").json()
        assert {name: one[name] for name in said} == said
        assert losses["loss"] == one["loss"]
        assert len(losses["results"]) == one["loss"]["lost"] == one["bins"]["lost"]
        shown = {name: one["bins"][name] for name in OUTCOMES}
        assert outcomes(row) == outcomes(line) == shown
        page = table_of(alices, f"{path}minutes/{said['minute']}/", "Messages by destination")
        by_destination = [part for part in page if part["Destination"] not in ("Now", "At seal")]
        assert {n: sum(outcomes(part)[n] for part in by_destination) for n in OUTCOMES} == shown
        assert number(row["Accepted"]) == int(line["accepted"]) == one["accepted"]
        assert number(row["Changed after seal"]) == int(line["late"]) == one["late"]
    assert outcomes(total) == {name: sum(one["bins"][name] for one in listed) for name in OUTCOMES}
    of_range = client_of(alice).get(f"/api/v1{path}minutes/").json()["total"]
    assert outcomes(total) == {name: of_range["bins"][name] for name in OUTCOMES}
    assert number(total["Changed after seal"]) == of_range["late"]


def test_graph_and_plots_of_the_pipe_agree_with_its_loss_table_its_dead_letters_and_the_api(
    alices: Client, client_of: MakeClient, alice: User, scene: Scene
):
    path, api = f"/pipes/{scene.pipe.id}/", client_of(alice)
    *rows, total = table_of(alices, path, "Loss by minute")
    plotted = table_of(alices, path, "Throughput, lag and outcomes, as a table")
    shown = {
        start_of(bucket).strftime("%H:%M"): row for bucket, row in zip((scene.open, scene.sealed), rows, strict=True)
    }
    names = ("delivered", "dead", "retrying", "held", "lost")
    for point in plotted:
        row = next((row for at, row in shown.items() if next(iter(point.values())).endswith(at)), {})
        assert {n: number(point[n.capitalize()]) for n in names} == {n: outcomes_of(row, n) for n in names}, point
        assert point["State"] == (row.get("State") or "sealed")
    assert {n: sum(number(point[n.capitalize()]) for point in plotted) for n in names} == {
        n: outcomes_of(total, n) for n in names
    }
    (crm,) = api.get(f"/api/v1{path}minutes/").json()["total"]["destinations"][1:]
    bins, lost = crm["bins"], 1  # of the sealed minute; that of the open one is not final
    judged = sum(bins.get(name, 0) for name in ("delivered", "retrying", "held", "dead")) + lost
    page = text_of(alices, path)
    assert f"{bins['delivered'] / judged * 100:.1f}% delivered" in page
    preview = api.post(f"/api/v1{path}moves/preview/", {"destination": "crm"}, format="json").json()
    assert f" {preview['count']} dead " in page


def test_sealed_minute_shows_what_is_true_now_and_what_was_true_at_the_seal(
    client_of: MakeClient, alice: User, scene: Scene
):
    one = client_of(alice).get(f"/api/v1/pipes/{scene.pipe.id}/minutes/{scene.sealed}/").json()
    assert {name: one["bins"][name] for name in OUTCOMES} == {
        "delivered": 7, "filtered": 0, "dead": 2, "retrying": 0, "lost": 1,
    }  # fmt: skip
    at_seal = {name: count for name, count in one["bins_at_seal"].items() if count}
    assert at_seal == {"delivered": 4, "retrying": 3, "dead": 3}
    assert one["late"] == 4


def test_home_agrees_with_the_pipe_its_dead_letters_its_alert_and_its_destination(
    alices: Client, client_of: MakeClient, alice: User, scene: Scene
):
    path, api = f"/pipes/{scene.pipe.id}/", client_of(alice)
    minutes = api.get(f"/api/v1{path}minutes/").json()["results"]
    sums = {name: sum(one["bins"][name] for one in minutes) for name in OUTCOMES}
    causes = {row["Status"]: number(row["Messages"]) for row in table_of(alices, "/", "Causes")}
    lost = sum(one["bins"]["lost"] for one in minutes if one["sealed_at"])
    assert 0 < lost < sums["lost"], "a loss in an open minute is not final, and is counted nowhere else"
    assert causes == {"dead": sums["dead"], "retrying": sums["retrying"], "lost": lost}
    assert causes == {
        row["Status"]: number(row["Messages"]) for row in table_of(alices, f"{path}destinations/crm/", "Causes")
    }
    (line,) = table_of(alices, "/", "Pipes")
    delivered, share = line["Delivered (1 h)"].split(maxsplit=1)
    assert (number(delivered), number(line["Lost (sealed minutes)"])) == (sums["delivered"], lost)
    assert share == f"{100 * sums['delivered'] / (sums['delivered'] + sum(causes.values())):.1f}%"
    assert number(line["Undelivered"]) == sum(causes.values())
    (dead,) = table_of(alices, f"{path}dead/", "Dead letters by cause")
    assert number(dead["Messages"]) == sums["dead"]
    preview = api.post(f"/api/v1{path}moves/preview/", {"destination": "crm"}, format="json").json()
    assert preview["count"] == sums["dead"]
    alert = text_of(alices, f"{path}alerts/{scene.alert.id}/")
    assert f"Dead letters now {sums['dead']} " in alert
    failures = api.get(f"/api/v1{path}alerts/{scene.alert.id}/").json()["count"]
    assert f"Failures, with repeats {failures} " in alert
    figures = text_of(alices, path)
    assert f"Delivered {sums['delivered']} Lost (sealed minutes) {lost} " in figures
    figures = text_of(alices, f"{path}destinations/crm/")
    assert f"Delivered (1 h) {sums['delivered']} Retrying (1 h) {sums['retrying']} " in figures
    assert f"Dead (1 h) {sums['dead']} " in figures


def test_alert_counts_only_the_dead_letters_of_its_cause(alices: Client, scene: Scene):
    now: datetime = timezone.now()
    store_dead(scene.pipe, range(40, 45), now, cause="timeout")
    assert "Dead letters now 2 " in text_of(alices, f"/pipes/{scene.pipe.id}/alerts/{scene.alert.id}/")


def test_alert_of_a_paused_pipe_counts_the_dead_letters_of_its_steps_of_any_cause(alices: Client, scene: Scene):
    now: datetime = timezone.now()
    store_dead(scene.pipe, range(40, 43), now, cause="route", where="")
    note_failures(failures=[FailureGroup(scene.pipe.id, "", "dead-rate", 3, now, {}, suspended=True)], now=now)
    alert = Alert.objects.get(cause="dead-rate")
    assert "Dead letters now 3 " in text_of(alices, f"/pipes/{scene.pipe.id}/alerts/{alert.id}/")


def test_list_of_alerts_says_what_each_count_counts(alices: Client, scene: Scene):
    Alert.objects.create(pipe=scene.pipe, cause="lost", count=1, opened_at=timezone.now(), last_at=timezone.now())
    listed = text_of(alices, "/alerts/")
    assert f" {scene.alert.count} failures " in listed
    assert " 1 message " in listed
