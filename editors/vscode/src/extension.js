// The extension, whatever it runs on: configurations, values behind lines, the command "Debug loop", editors and views.
'use strict';

const vscode = require('vscode');
const { completed, hasInputs, inputsBeside, MODEL } = require('./configuration');
const { ModelEditor, VIEW } = require('./editor');
const { Findings } = require('./findings');
const { LoopView } = require('./following');
const { Models } = require('./models');

const NO_MODEL = 'Which model? Open an .xml or .onnx, or choose one in the explorer.';

let file; // makes the address of a path

async function exists(path) {
  try {
    await vscode.workspace.fs.stat(file(path));
    return true;
  } catch {
    return false;
  }
}

/** `words` returns (later) the program, and tells the user where there is none: VS Code would offer launch.json. */
const configurations = (words) => ({
  /** Fill what is missing, when all variables such as ${workspaceFolder} have their values. */
  async resolveDebugConfigurationWithSubstitutedVariables(folder, configuration) {
    try {
      const found = await completed(configuration, frontPath(), exists);
      return found.debugServer || (await words(folder)) ? found : undefined;
    } catch (error) {
      vscode.window.showErrorMessage(error.message);
      return undefined;
    }
  },
  /** F5 without a launch.json. */
  async resolveDebugConfiguration(_folder, configuration) {
    if (configuration.type || configuration.request || configuration.name) return configuration;
    const path = frontPath();
    if (!path || !MODEL.test(path)) {
      vscode.window.showErrorMessage(NO_MODEL);
      return undefined;
    }
    const found = configured(path);
    return (await asked(found)) ? found : undefined;
  },
  /** What the list of configurations offers by itself. */
  provideDebugConfigurations() {
    const path = frontPath();
    return path && MODEL.test(path) ? [configured(path)] : [];
  },
});

/** Values stand behind the lines that have some at this stop. */
const inlineValues = {
  async provideInlineValues(document, view, context) {
    const session = vscode.debug.activeDebugSession;
    if (!session || session.type !== 'stepper') return [];
    const asked = { frameId: context.frameId, line: view.start.line + 1, endLine: view.end.line + 1 };
    const { values } = await session.customRequest('stepper/values', asked);
    return values.map(({ line, text }) => new vscode.InlineValueText(document.lineAt(line - 1).range, text));
  },
};

/** Return the path of the file in front: in a text editor, or in the editor of models. */
function frontPath() {
  const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
  const uri = tab && tab.input && tab.input.uri;
  return uri && uri.scheme === file('/').scheme ? uri.fsPath : undefined;
}

function configured(model) {
  return { type: 'stepper', request: 'launch', name: 'Debug loop', model };
}

/** Debug what was chosen in the explorer or stands in the editor; ask for inputs where none lie beside it. */
async function debugLoop(uri) {
  const path = uri ? uri.fsPath : frontPath();
  if (!path) {
    vscode.window.showErrorMessage(NO_MODEL);
    return;
  }
  const configuration = configured(path);
  if (MODEL.test(path) && !(await asked(configuration))) return;
  const folder = vscode.workspace.getWorkspaceFolder(file(path));
  await vscode.debug.startDebugging(folder, configuration);
}

/** Return the options that name the inputs of a model; undefined if none were chosen. */
async function given(path) {
  const configuration = configured(path);
  if (!(await asked(configuration))) return undefined;
  const { inputs, input } = await completed(configuration, path, exists);
  return [...(inputs ? ['--inputs', inputs] : []), ...Object.entries(input || {}).flatMap(([name, what]) => ['--input', `${name}=${what}`])];
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

/**
 * Register everything. `host` has what depends on where the extension runs: `adapter` makes the descriptor of a session's
 * adapter, `file` the address of a path, `words` finds the program, `install` installs it, `output` returns what it writes, `head` begins to read a file.
 */
function activate(context, host) {
  file = host.file;
  const view = new LoopView();
  const models = new Models(host.head);
  context.subscriptions.push(
    vscode.debug.registerDebugConfigurationProvider('stepper', configurations(host.words)),
    vscode.debug.registerDebugAdapterDescriptorFactory('stepper', { createDebugAdapterDescriptor: host.adapter }),
    vscode.debug.registerDebugAdapterTrackerFactory('stepper', {
      createDebugAdapterTracker: (session) => ({ onDidSendMessage: (message) => view.sent(session, message) }),
    }),
    vscode.debug.onDidTerminateDebugSession((session) => view.forget(session)),
    vscode.debug.onDidChangeActiveDebugSession((session) => {
      if (session && session.type === 'stepper' && session !== view.session) view.follow(session);
    }),
    vscode.commands.registerCommand('stepper.debugLoop', debugLoop),
    vscode.commands.registerCommand('stepper.showLoop', () => view.open()),
    vscode.commands.registerCommand('stepper.showModel', (uri) => vscode.commands.executeCommand('vscode.openWith', uri, VIEW)),
    vscode.commands.registerCommand('stepper.install', () => host.install()),
    vscode.languages.registerInlineValuesProvider({ language: 'stepper-listing' }, inlineValues),
    vscode.window.registerCustomEditorProvider(VIEW, new ModelEditor(host.output, debugLoop)),
  );
  new Findings(host.output, given).begin(context);
  models.begin(context);
  return view;
}

module.exports = { activate };
