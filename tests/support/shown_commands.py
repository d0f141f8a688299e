"""Evidence that each command of the guides works: its test, or the reason why none runs it and the check instead.

Three kinds need no entry: a block that begins with curl runs in tests/integration/test_curl_commands.py, `manage.py` in
tests/db/mgmt/test_documented_commands.py, `export` in tests/unit/support/test_snippets.py. A key is the words of a
command as a shell splits them, so a changed command needs another look.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

from localbox.settings import ROOT
from tests.support.doc_blocks import GENERATED, Block, blocks

CURL_PAGES: Final = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_ASSIGNED: Final = re.compile(r"^[A-Z_]+=\S")


class AsShown(NamedTuple):
    """The test takes the command from its page, and replaces at most addresses, keys and times."""

    test: str


class SameCommand(NamedTuple):
    """The test runs the same command with values of its own; these words of its module start it."""

    test: str
    words: str


class NotRun(NamedTuple):
    """No test runs the command. checked: the test of what can be checked without it, if there is one"""

    why: str
    checked: str = ""


class Command(NamedTuple):
    """Command of a block. words: without variables in front of it; key: all of it, as in COMMANDS."""

    block: Block
    key: str
    words: list[str]


def guides() -> list[Block]:
    """Return the blocks of all pages but the generated ones and the decisions."""
    return [one for one in blocks() if GENERATED not in one.page.parents and "decisions" not in one.page.parts]


def curl_blocks() -> list[Block]:
    """Return the blocks that begin with curl, on pages that their test reads."""
    return [one for one in guides() if one.language == "sh" and one.text.startswith("curl ") and one.page in CURL_PAGES]


def commands() -> Iterator[Command]:
    """Yield each command of the guides."""
    for block in guides():
        for line in _lines(block.text) if block.language == "sh" else ():
            words = shlex.split(line, comments=True)
            key = " ".join(words)
            while words and _ASSIGNED.match(words[0]):
                words.pop(0)
            if words:
                yield Command(block, key, words)


def management_commands() -> list[Command]:
    """Return each command of `manage.py` that has no entry: the database is all that it needs."""
    return [one for one in commands() if one.words[:2] == ["python", "manage.py"] and one.key not in COMMANDS]


def _lines(text: str) -> list[str]:
    """Return a line for each command: without line ends that a backslash or a quoted text continues."""
    lines: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if lines and lines[-1].count("'") % 2:
            lines[-1] += " " + line
        else:
            lines.append(line)
    return lines


_BOX: Final = "tests/integration/localbox/"
_BACKUP: Final = (
    f"{_BOX}test_backup_of_a_box.py::test_restored_box_delivers_what_was_acked_before_the_backup_and_its_ledger_agrees"
)
_COPIED: Final = SameCommand(_BACKUP, 'box.command("backup", str(archive))')
_RESTORED: Final = SameCommand(_BACKUP, 'box.command("restore", str(archive))')
_DEMO: Final = SameCommand(
    f"{_BOX}test_demo_once.py::test_run_ends_with_every_unit_delivered_once_and_equal_accounts",
    '[sys.executable, "-m", "localbox.demo"]',
)
_UP: Final = SameCommand(
    f"{_BOX}test_supervisor.py::test_kafka_and_postgres_keep_their_data_across_down_and_up", "box.start()"
)
_DOWN: Final = SameCommand(
    f"{_BOX}test_supervisor.py::test_down_ends_everything_and_a_second_down_succeeds", 'box.command("down")'
)
_WHEEL: Final = f"{_BOX}test_wheel.py::test_wheel_installs_everything_and_its_box_delivers"
_EXAMPLES: Final = "tests/e2e/test_examples.py::test_examples_create_a_pipe_send_events_and_verify_the_signed_messages"
_GUIDE: Final = AsShown("tests/e2e/test_cli.py::test_commands_of_the_guide_run_as_they_are_shown")
_TYPED: Final = AsShown("tests/db/mgmt/test_documented_commands.py::test_typed_client_is_generated_as_it_is_shown")
_WEBHOOK: Final = "tests/e2e/test_first_webhook.py::test_newcomer_receives_a_github_webhook_within_ten_minutes"
_KILLED: Final = (
    "tests/faults/test_region_failover.py::"
    "test_killed_cluster_is_replaced_within_a_minute_and_unmirrored_events_are_named"
)
_MOVED: Final = "tests/faults/test_region_failover.py::test_planned_move_and_return_keep_every_event_at_its_offset"
_RECOMPUTE: Final = (
    "tests/integration/jobs/test_recompute.py::"
    "test_rows_and_windows_of_one_customer_are_recomputed_and_repeats_have_no_row"
)
_VERIFIED: Final = (
    "tests/integration/test_verify_signatures.py::test_receiver_accepts_exactly_the_deliveries_that_penstock_signed"
)
_NO_CLUSTER: Final = "needs a Kubernetes cluster"
_NO_DAEMON: Final = "needs a Docker daemon"
_INDEX: Final = "needs a package index"
_SUITE: Final = "is a run of the tests itself"
_GIT: Final = "changes the checkout that the tests run in"
_COMPOSE: Final = "tests/unit/localbox/test_compose.py::"
_MANIFESTS: Final = "tests/unit/localbox/test_manifests.py::"
_CONTAINERS: Final = NotRun(
    _NO_DAEMON, f"{_COMPOSE}test_compose_has_the_programs_of_the_box_and_what_production_needs_besides"
)
_VOLUMES: Final = NotRun(_NO_DAEMON, f"{_COMPOSE}test_guide_backs_up_every_volume")
_SECRETS: Final = NotRun(_NO_CLUSTER, f"{_MANIFESTS}test_secrets_that_pods_reference_are_those_that_the_guide_creates")

COMMANDS: Final[dict[str, AsShown | SameCommand | NotRun]] = {
    "make demo": _DEMO,
    "make demo ONCE=1 COUNT=5000 RATE=500": _DEMO,
    "make up": _UP,
    "make down": _DOWN,
    "make backup FILE=/backups/penstock-2026-11-28.tar.gz": _COPIED,
    "make backup FILE=/backups/before-0.2.0.tar.gz": _COPIED,
    "make restore FILE=/backups/penstock-2026-11-28.tar.gz": _RESTORED,
    "make restore FILE=/backups/before-0.2.0.tar.gz": _RESTORED,
    "make wheel": SameCommand(
        f"{_BOX}test_make_wheel.py::test_release_has_the_files_that_the_guide_lists",
        '["make", "--no-print-directory", "wheel"',
    ),
    "make lake-recompute PIPE=pipe_1 DESTINATION=store REVISION=8 SINCE=2026-11-21T00:00:00Z": SameCommand(
        _RECOMPUTE, 'table.recompute("--revision", "1")'
    ),
    "make lake-recompute PIPE=pipe_1 DESTINATION=store REVISION=8 SINCE=2026-11-21T00:00:00Z KEY=customer-17": (
        SameCommand(_RECOMPUTE, '"--key", "a")')
    ),
    "make test": NotRun(_SUITE),
    "PENSTOCK_UPGRADE_FROM=v0.1.0 make test-long": NotRun(_SUITE),
    "PENSTOCK_PYTHONS=/usr/bin/python3.11:/usr/bin/python3.12:/usr/bin/python3.13 "
    ".venv/bin/pytest -m long -p no:xdist tests/integration/localbox/test_wheel.py": NotRun(_SUITE),
    "make vulnerabilities STRICT=1": NotRun(
        _INDEX, "tests/unit/support/test_vulnerability_scan.py::test_code_and_text_of_a_report"
    ),
    "penstock login --url https://penstock.example.com": _GUIDE,
    "penstock export orders --out pipes --rows": _GUIDE,
    "penstock validate pipes/orders.yaml --sample event.json": _GUIDE,
    "penstock diff pipes/orders.yaml": _GUIDE,
    "penstock apply pipes/orders.yaml --yes": _GUIDE,
    'penstock send --pipe orders {"id": "o-1", "total": 12.5, "created_at": "2026-11-27T12:00:00Z"}': _GUIDE,
    "penstock send --pipe orders --file orders.ndjson": _GUIDE,
    "penstock replay --pipe orders --since 2h --until 1h --destination books": _GUIDE,
    "penstock listen --pipe orders --to http://localhost:3000/webhooks --since 10m": _GUIDE,
    "penstock generate --lang python --package shop_events --out clients --subject order=orders-value": _TYPED,
    "pip install --no-deps penstock-0.1.0-py3-none-any.whl": SameCommand(
        f"{_BOX}test_wheel.py::test_command_line_of_the_wheel_runs_without_a_checkout", "install(wheel, "
    ),
    "pip install typer httpx attrs python-dateutil PyYAML msgspec cryptography google-re2 jsonschema-rs lark": NotRun(
        _INDEX, "tests/unit/penstock_cli/test_start.py::test_documented_packages_are_enough_for_every_command"
    ),
    "python3 -m venv penstock": SameCommand(_WHEEL, '"-m", "venv"'),
    "penstock/bin/pip install penstock-X.Y.Z-py3-none-any.whl[box]": SameCommand(_WHEEL, 'f"{wheel}[box]"'),
    "penstock/bin/pip download --dest packages penstock-0.2.0-py3-none-any.whl[box]": NotRun(_INDEX, _WHEEL),
    "penstock/bin/pip install --no-index --find-links packages penstock-0.2.0-py3-none-any.whl[box]": NotRun(
        _INDEX, _WHEEL
    ),
    "penstock/bin/penstock box up --detach": SameCommand(_WHEEL, '["box", "up", "--detach"]'),
    "penstock/bin/penstock box down": SameCommand(_WHEEL, '["box", "down"]'),
    "penstock/bin/penstock box backup /backups/before-0.2.0.tar.gz": _COPIED,
    "PENSTOCK_KAFKA_SETTINGS=/path/of/an/administrator.json python manage.py kafka_access roles --apply": NotRun(
        "changes the roles that every test of a secured Kafka signs in as",
        "tests/integration/test_password_rotation.py::test_second_user_of_a_role_leaves_no_gap",
    ),
    "PENSTOCK_KAFKA_SETTINGS=/path/of/an/administrator.json python manage.py kafka_access customer --tenant ten_...": (
        SameCommand(
            "tests/integration/test_secured_kafka.py::test_revoked_tenant_cannot_sign_in",
            'access_command(box, "customer", "--tenant", name)',
        )
    ),
    "python manage.py lane_offsets c1 --partition penstock.c1.ingest.g1/0 --offset 4711": SameCommand(
        "tests/integration/controlplane/test_lane_offsets.py"
        "::test_only_partitions_with_a_lost_offset_are_listed_and_a_commit_repairs_them",
        'call_command("lane_offsets", cell.id, *words)',
    ),
    "python manage.py region status": SameCommand(_MOVED, 'there.region("status")'),
    "python manage.py region failover --dry-run": SameCommand(_KILLED, 'link.region("failover", "--dry-run")'),
    "python manage.py region failover": SameCommand(_KILLED, 'link.region("failover")'),
    "python manage.py region bind": NotRun(
        "needs Postgres and a promoted cluster in one test",
        "tests/db/controlplane/test_region.py::"
        "test_topics_are_bound_to_the_ids_of_the_promoted_cluster_and_the_cell_is_published",
    ),
    "python manage.py region unmirrored --to unmirrored.jsonl": SameCommand(_MOVED, '"unmirrored", "--to", str(named)'),
    "python manage.py region failback --unmirrored unmirrored-at-return.jsonl --delete-topics": SameCommand(
        _MOVED, '"failback", "--unmirrored", str(left), "--delete-topics"'
    ),
    "PYTHONPATH=platform .venv/bin/python -m localbox run -- .venv/bin/python manage.py changepassword alice": NotRun(
        "asks for the password at a terminal", f"{_BOX}test_wheel.py::test_commands_with_options_are_passed_on"
    ),
    "python3 examples/github_webhook.py $URL a-secret-that-only-github-knows examples/github_push.json": AsShown(
        _WEBHOOK
    ),
    "python3 examples/create_pipe.py examples/pipe.json > pipe.env": SameCommand(_EXAMPLES, 'run("create_pipe.py"'),
    ". ./pipe.env": SameCommand(_EXAMPLES, 'line.removeprefix("export ")'),
    "python examples/receive.py": SameCommand(_EXAMPLES, '[sys.executable, EXAMPLES / "receive.py"]'),
    "python3 examples/send.py < examples/orders.jsonl": SameCommand(_EXAMPLES, 'run("send.py"'),
    'echo {"created_at": "2026-03-14T09:30:00Z", "customer": {"id": "c-3"}, "total": 20.0} | examples/send.sh': (
        SameCommand(_EXAMPLES, 'run("send.sh"')
    ),
    "python examples/verify_signatures/receive.py": SameCommand(_VERIFIED, '[sys.executable, "receive.py"]'),
    "npx openapi-typescript penstock.yaml --default-non-nullable=false -o api.ts": SameCommand(
        "tests/integration/api_clients/test_typescript_client.py::"
        "test_generated_client_lists_creates_runs_and_reads_problems",
        '"--default-non-nullable=false", "-o", "api.ts"',
    ),
    "npm install openapi-fetch && npm install --save-dev openapi-typescript typescript": NotRun(_INDEX),
    "gh extension install cli/gh-webhook": NotRun("needs an account at GitHub"),
    "gh webhook forward --repo=OWNER/REPOSITORY --events=push --url=$URL --secret=a-secret-that-only-github-knows": (
        NotRun("needs an account at GitHub", _WEBHOOK)
    ),
    "git fetch --tags": NotRun(_GIT),
    "git checkout v0.1.0": NotRun(_GIT),
    "git checkout v0.2.0": NotRun(
        _GIT, f"{_BOX}test_upgrade_of_a_box.py::test_upgrade_under_traffic_delivers_everything_that_was_acked"
    ),
    "git tag -s vX.Y.Z -m Penstock X.Y.Z": NotRun(_GIT),
    "mv var var.0.2.0": NotRun("moves the data of the checkout that the tests run in"),
    "kubectl apply -f deploy/kubernetes/namespace.yaml": NotRun(
        _NO_CLUSTER, f"{_MANIFESTS}test_each_manifest_is_valid_by_its_strict_schema"
    ),
    "kubectl -n penstock create secret generic penstock-data --from-literal=PENSTOCK_FERNET_KEYS=...": _SECRETS,
    "kubectl -n penstock create secret generic penstock-control --from-literal=PENSTOCK_SECRET_KEY=... "
    "--from-literal=DATABASE_URL=postgresql://... --from-literal=REDIS_URL=redis://... "
    "--from-literal=PENSTOCK_MAIL_URL=smtp+tls://...": _SECRETS,
    "kubectl -n penstock create secret generic penstock-web "
    "--from-literal=DATABASE_URL=postgresql://penstock_pages:...@.../penstock": _SECRETS,
    "kubectl -n penstock rollout restart deployment/web": NotRun(_NO_CLUSTER),
    "helm upgrade --install penstock deploy/helm/penstock --namespace penstock --values values.yaml": NotRun(
        _NO_CLUSTER, "tests/integration/test_helm_chart.py::test_values_of_the_guide_are_accepted"
    ),
    "docker buildx build --platform linux/amd64,linux/arm64 --tag registry.example.com/penstock:0.1.0 --push .": NotRun(
        _NO_DAEMON, f"{_COMPOSE}test_images_are_pinned_by_a_full_version"
    ),
    "docker compose build": _CONTAINERS,
    "docker compose up --build --detach": _CONTAINERS,
    "docker compose up --detach": _CONTAINERS,
    "docker compose up --detach --no-deps --wait ingest-1": _CONTAINERS,
    "docker compose up --detach --no-deps --wait ingest-2": _CONTAINERS,
    "docker compose ps": _CONTAINERS,
    "docker compose exec worker python manage.py createsuperuser": _CONTAINERS,
    "docker compose stop": _VOLUMES,
    "docker compose start": _VOLUMES,
    "docker run --rm --volume penstock_kafka:/from:ro --volume /backups:/to debian:12 "
    "tar -czf /to/kafka.tar.gz -C /from .": _VOLUMES,
}
# Programs on pages that no test asks for: the page shows a file, which the test runs.
PROGRAMS_ELSEWHERE: Final = {
    ("verify-signatures.md", "python"): SameCommand(_VERIFIED, '"receive.py"'),
    ("verify-signatures.md", "javascript"): SameCommand(_VERIFIED, '"receive.mjs"'),
    ("verify-signatures.md", "go"): SameCommand(_VERIFIED, '"receive.go"'),
    ("verify-signatures.md", "java"): SameCommand(_VERIFIED, '"Receive.java"'),
    ("verify-signatures.md", "php"): SameCommand(_VERIFIED, '"receive.php"'),
}
