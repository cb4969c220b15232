// The extension where programs can be started: the adapter is `stepper dap`, on its stdin and stdout.
'use strict';

const fs = require('fs');
const path = require('path');
const vscode = require('vscode');
const extension = require('./extension');
const program = require('./program');

function isFile(name) {
  try {
    return fs.statSync(name).isFile();
  } catch {
    return false;
  }
}

/** Return the Python of the environment that its extension has chosen for a resource; undefined without that. */
async function chosenPython(resource) {
  const python = vscode.extensions.getExtension('ms-python.python');
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

async function adapter(session) {
  const folder = session.workspaceFolder;
  const setting = vscode.workspace.getConfiguration('stepper', folder).get('command');
  const words = program.found(setting, await chosenPython(folder && folder.uri), process.env.PATH, isFile, folder && folder.uri.fsPath);
  if (!words) {
    const open = 'Open the setting';
    const text = 'The program stepper was not found: install it into the chosen Python environment (pip install stepper), or name it in the setting stepper.command.';
    vscode.window.showErrorMessage(text, open).then((chosen) => {
      if (chosen) vscode.commands.executeCommand('workbench.action.openSettings', 'stepper.command');
    });
    throw new Error('the program stepper was not found');
  }
  const model = session.configuration.model || '';
  const cwd = folder ? folder.uri.fsPath : path.dirname(model) || undefined;
  return new vscode.DebugAdapterExecutable(words[0], [...words.slice(1), 'dap'], { cwd });
}

exports.activate = (context) => void extension.activate(context, adapter);
