"""A TypeScript client that is generated from docs/openapi.yaml compiles strictly and works against the API."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from localbox.settings import ROOT
from mgmt.models import Pipe, User
from mgmt.services import create_tenant
from tests.support.doc_blocks import documented

HERE: Final = Path(__file__).parent
BIN: Final = HERE / "node" / "node_modules" / ".bin"
LIMIT_S: Final = 240
PASSWORD: Final = "alice's long password"
OPTIONS: Final = {
    "compilerOptions": {
        "strict": True,
        "exactOptionalPropertyTypes": True,
        "noUncheckedIndexedAccess": True,
        "target": "ES2022",
        "module": "NodeNext",
        "lib": ["ES2022", "DOM"],
        "types": ["node"],
        "skipLibCheck": False,
    },
    "files": ["driver.ts", "guide.ts"],
}


def run(words: Sequence[str | Path], folder: Path, **env: str) -> str:
    """Run a program; return its output. A missing one fails the test with what to install."""
    if shutil.which(str(words[0])) is None:
        pytest.fail(f"{words[0]} is missing; run `make typescript`")
    ran = subprocess.run(
        words, cwd=folder, env=os.environ | env, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert ran.returncode == 0, f"{' '.join(map(str, words))}:\n{ran.stdout[-6000:]}\n{ran.stderr[-6000:]}"
    return ran.stdout


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """Folder with the generated types and the compiled program."""
    (tmp_path / "node_modules").symlink_to(HERE / "node" / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps(OPTIONS))
    shutil.copy(HERE / "driver.ts", tmp_path)
    authorization = "const authorization = `Basic ${btoa(process.env.BASIC!)}`;\n"
    (tmp_path / "guide.ts").write_text(authorization + documented("api-clients.md", "ts"))
    run(
        [BIN / "openapi-typescript", ROOT / "docs" / "openapi.yaml", "--default-non-nullable=false", "-o", "api.ts"],
        tmp_path,
    )
    run([BIN / "tsc", "-p", "."], tmp_path)
    return tmp_path


@pytest.mark.django_db(transaction=True)
def test_generated_client_lists_creates_runs_and_reads_problems(
    driver: Path, live_server: LiveServer, settings: Settings
):
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    alice = User.objects.create_user("alice", password=PASSWORD)
    create_tenant(name="Alice's", owner=alice)
    seen = json.loads(run(["node", "driver.js", live_server.url, "alice", PASSWORD], driver))
    pipe = Pipe.objects.get()
    assert seen == {
        "created": pipe.id,
        "repeated": pipe.id,
        "replayed": "true",
        "names": ["orders"],
        "next": None,
        "destinations": ["crm", "archive"],
        "problem": "not-found",
        "taken": "name-taken",
    }
    Pipe.objects.filter(id=pipe.id).update(name="first")  # the guide's program creates one of that name
    shown = run(["node", "guide.js"], driver, PENSTOCK=live_server.url, BASIC=f"alice:{PASSWORD}")
    assert shown.strip() == Pipe.objects.exclude(id=pipe.id).get().id
