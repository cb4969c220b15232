// The extension where programs can be started: the adapter is `stepper dap`, on its stdin and stdout.
'use strict';

const { execFile } = require('child_process');
const fs = require('fs');
const path = require('path');
const vscode = require('vscode');
const extension = require('./extension');
const program = require('./program');

const PYTHON_EXTENSION = 'ms-python.python';
const LARGEST = 64 << 20; // bytes of a figure
const SECONDS = 120;
const FOUND = 1; // the exit code of a finding

function isFile(name) {
  try {
    return fs.statSync(name).isFile();
  } catch {
    return false;
  }
}

/** Return the Python of the environment that its extension has chosen for a resource; undefined without that. */
async function chosenPython(resource) {
  const python = vscode.extensions.getExtension(PYTHON_EXTENSION);
  if (!python) return undefined;
  try {
    const api = python.isActive ? python.exports : await python.activate();
    const chosen = api.environments.getActiveEnvironmentPath(resource);
    const known = await api.environments.resolveEnvironment(chosen);
    return known && known.executable.uri ? known.executable.uri.fsPath : chosen.path;
  } catch {
    return undefined;
  }
}

/** Return the program and its first words; undefined where there is none, which the user is told. */
async function words(folder) {
  const setting = vscode.workspace.getConfiguration('stepper', folder).get('command');
  const python = await chosenPython(folder && folder.uri);
  const found = program.found(setting, python, process.env.PATH, isFile, folder && folder.uri.fsPath);
  if (!found) tellMissing(folder);
  return found;
}

async function tellMissing(folder) {
  const offered = { Install: () => install(folder) };
  if (vscode.extensions.getExtension(PYTHON_EXTENSION)) {
    offered['Select Interpreter'] = () => vscode.commands.executeCommand('python.setInterpreter');
  }
  offered['Open Setting'] = () => vscode.commands.executeCommand('workbench.action.openSettings', 'stepper.command');
  const text = `The program stepper was not found. Install the Python package ${program.DISTRIBUTION}, select the interpreter that has it, or set stepper.command.`;
  const chosen = await vscode.window.showErrorMessage(text, ...Object.keys(offered));
  if (chosen) await offered[chosen]();
}

/** Install the program in a terminal, where the user sees what is done. */
async function install(folder = (vscode.workspace.workspaceFolders || [])[0]) {
  const line = program.installing(await chosenPython(folder && folder.uri), isFile, folder && folder.uri.fsPath);
  const terminal = vscode.window.createTerminal({ name: 'Install stepper', cwd: folder && folder.uri });
  terminal.show();
  terminal.sendText(line);
}

async function adapter(session) {
  const folder = session.workspaceFolder;
  const found = await words(folder);
  const model = session.configuration.model || '';
  const cwd = folder ? folder.uri.fsPath : path.dirname(model) || undefined;
  return found && new vscode.DebugAdapterExecutable(found[0], [...found.slice(1), 'dap'], { cwd });
}

/** Return the first bytes of a file as text. */
async function head(uri, count) {
  const file = await fs.promises.open(uri.fsPath);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(count), 0, count, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Return what the program writes for some words, also if it ends with a finding; an Error has what it says is wrong. */
async function output(uri, ...more) {
  const found = await words(vscode.workspace.getWorkspaceFolder(uri));
  if (!found) throw new Error('The program stepper was not found.');
  return new Promise((resolve, reject) => {
    const options = { cwd: path.dirname(uri.fsPath), maxBuffer: LARGEST, timeout: 1000 * SECONDS };
    execFile(found[0], [...found.slice(1), ...more], options, (error, out, told) => {
      if (error && error.code !== FOUND) reject(new Error(told.trim() || error.message));
      else resolve(out);
    });
  });
}

exports.activate = (context) => void extension.activate(context, { adapter, file: vscode.Uri.file, head, install, output, words });
