"""Sessions of a real client of the Debug Adapter Protocol: that with which VS Code tests adapters, from npm.

STEPPER_CLIENTS=all has them, as .ci/run does; else nothing is fetched.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepper.integrations.dap.answering import REQUESTS
from tests.conformance.npm_packages import installed

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "debug_adapter" / "session.js"
CLIENT = "@vscode/debugadapter-testsupport@1.68.0"
SESSIONS = ["overflow", "nested", "sequence", "attached"]
SECONDS = 120


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the client's package."""
    return installed(tmp_path_factory.mktemp("client"), CLIENT)


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Samples in a folder where listings may be written."""
    for name in ("rwkv_overflow", "nested_loop", "specification_lstm"):
        shutil.copytree(ROOT / "sample_models" / name, tmp_path / name, ignore=shutil.ignore_patterns(".stepper"))
    nested = tmp_path / "nested_loop"
    given = ["--inputs", nested / "inputs.npz", "--trace", tmp_path / "run.sqlite", "--quiet"]
    subprocess.run([sys.executable, "-m", "stepper", "run", nested / "model.xml", *given], cwd=ROOT, check=True)
    return tmp_path


def held(modules: Path, samples: Path, *port: str) -> list[str]:
    """The sessions that went well."""
    adapter = samples / "adapter.py"
    adapter.write_text("import sys\nfrom stepper.cli import main\nsys.exit(main(['dap']))\n")
    words = ["node", SCRIPT, modules, sys.executable, adapter, samples, *port]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    *sessions, requests = done.stdout.splitlines()
    assert set(requests.split()[1:]) - {"nonsense"} == set(REQUESTS)
    return sessions


def test_a_real_client_has_every_request_answered_forward_and_back(modules: Path, samples: Path) -> None:
    assert held(modules, samples) == SESSIONS


@pytest.fixture
def port() -> Iterator[tuple[str, str]]:
    """The port of an adapter, and its token."""
    command = [sys.executable, "-m", "stepper", "dap", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        match = re.search(r"listening on 127.0.0.1:([0-9]+)", process.stdout.readline())
        assert match is not None
        yield match[1], process.stdout.readline().split()[1]
        process.terminate()


def test_it_serves_real_clients_on_a_port_one_after_another(
    modules: Path, samples: Path, port: tuple[str, str]
) -> None:
    assert held(modules, samples, *port) == SESSIONS
