"""The Celery application: `celery -A config worker` and `celery -A config beat`.

Celery only wakes the control plane. Rows are the truth, so a lost or duplicate message does no harm: the next tick
reads from the rows what is due.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings

from mgmt.cells.schedule import EVERY_S

EXPIRE_AFTER = 5  # periods, but at most half a minute
# Longer than any task runs (they read and write and never wait), far shorter than an operator would wait.
VISIBILITY_TIMEOUT_S = 300

app = Celery("penstock")
app.conf.update(
    imports=("config.task_metrics", "config.task_tracing"),  # their signals follow the tasks
    broker_url=settings.REDIS_URL,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        "socket_timeout": 5,
        "socket_connect_timeout": 3,
        "health_check_interval": 10,
    },
    result_backend=None,
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_default_queue="penstock",
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    worker_enable_remote_control=False,
    timezone="UTC",
    enable_utc=True,
    beat_schedule_filename=str(settings.PENSTOCK_VAR / "celerybeat-schedule"),
    beat_schedule={
        task: {
            "task": task,
            "schedule": every_s,
            # A tick that no worker took in time is worthless: the next one reads the same rows.
            "options": {"expires": min(EXPIRE_AFTER * every_s, 30.0)},
        }
        for task, every_s in EVERY_S.items()
    },
)
ROOMS = ("provisioner", "lookups", "operational_events", "observer", "deployer", "autoscaler", "delivery_test")
app.autodiscover_tasks([f"controlplane.{room}" for room in ROOMS])
