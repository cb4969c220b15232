"""Packages from npm, and the browser, for tests with real clients; what is not there skips with its reason."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 240


def installed(folder: Path, *packages: str, browser: bool = False) -> Path:
    """The folder of the modules of these packages; skips where they, or the browser, cannot be had."""
    if os.environ.get("STEPPER_CLIENTS") != "all":
        pytest.skip("STEPPER_CLIENTS=all fetches clients from npm")
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    if browser and CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    install = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages]
    try:
        done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm does not come to an end within {SECONDS} seconds")
    if done.returncode != 0:
        pytest.skip(f"npm install: {(done.stderr.strip().splitlines() or ['it failed'])[0]}")
    return folder / "node_modules"
