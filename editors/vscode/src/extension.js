// The extension, whatever it runs on: configurations, the command "Debug loop", and the view that follows a session.
'use strict';

const vscode = require('vscode');
const { completed, hasInputs, inputsBeside, MODEL } = require('./configuration');
const { LoopView } = require('./following');

async function exists(path) {
  try {
    await vscode.workspace.fs.stat(vscode.Uri.file(path));
    return true;
  } catch {
    return false;
  }
}

const configurations = {
  /** Fill what is missing, when all variables such as ${workspaceFolder} have their values. */
  async resolveDebugConfigurationWithSubstitutedVariables(_folder, configuration) {
    try {
      return await completed(configuration, frontPath(), exists);
    } catch (error) {
      await vscode.window.showErrorMessage(error.message, { modal: true });
      return undefined;
    }
  },
  /** F5 without a launch.json. */
  resolveDebugConfiguration(_folder, configuration) {
    if (configuration.type || configuration.request || configuration.name) return configuration;
    const path = frontPath();
    return path && MODEL.test(path) ? configured(path) : undefined;
  },
  /** What the list of configurations offers by itself. */
  provideDebugConfigurations() {
    const path = frontPath();
    return path && MODEL.test(path) ? [configured(path)] : [];
  },
};

function frontPath() {
  const editor = vscode.window.activeTextEditor;
  return editor && editor.document.uri.scheme === 'file' ? editor.document.uri.fsPath : undefined;
}

function configured(model) {
  return { type: 'stepper', request: 'launch', name: 'Debug loop', model };
}

/** Debug what was chosen in the explorer or stands in the editor; ask for inputs where none lie beside it. */
async function debugLoop(uri) {
  const path = uri ? uri.fsPath : frontPath();
  if (!path) {
    vscode.window.showErrorMessage('Open an .xml or .onnx, or choose one in the explorer.');
    return;
  }
  const configuration = configured(path);
  if (MODEL.test(path) && !(await asked(configuration))) return;
  const folder = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(path));
  await vscode.debug.startDebugging(folder, configuration);
}

/** Ask for inputs where there are none; false if nothing was chosen. */
async function asked(configuration) {
  for (const path of inputsBeside(configuration.model)) if (await exists(path)) return true;
  const random = 'Random numbers';
  const file = 'An .npz file…';
  const without = 'None: the model has no inputs';
  const chosen = await vscode.window.showQuickPick([random, file, without], {
    title: 'Inputs of the model', placeHolder: 'There is no inputs.npz beside the model',
  });
  if (chosen === random) configuration.input = { '*': 'rand:0' };
  if (chosen === file) {
    const [found] = (await vscode.window.showOpenDialog({ filters: { 'numpy arrays': ['npz'] } })) || [];
    if (!found) return false;
    configuration.inputs = found.fsPath;
  }
  return chosen !== undefined && (chosen === without || hasInputs(configuration));
}

/** Register everything; `adapter` makes the descriptor of a session's adapter. */
function activate(context, adapter) {
  const view = new LoopView();
  context.subscriptions.push(
    vscode.debug.registerDebugConfigurationProvider('stepper', configurations),
    vscode.debug.registerDebugAdapterDescriptorFactory('stepper', { createDebugAdapterDescriptor: adapter }),
    vscode.debug.registerDebugAdapterTrackerFactory('stepper', {
      createDebugAdapterTracker: (session) => ({ onDidSendMessage: (message) => view.sent(session, message) }),
    }),
    vscode.debug.onDidTerminateDebugSession((session) => view.forget(session)),
    vscode.debug.onDidChangeActiveDebugSession((session) => {
      if (session && session.type === 'stepper' && session !== view.session) view.follow(session);
    }),
    vscode.commands.registerCommand('stepper.debugLoop', debugLoop),
    vscode.commands.registerCommand('stepper.showLoop', () => view.open()),
  );
  return view;
}

module.exports = { activate };
