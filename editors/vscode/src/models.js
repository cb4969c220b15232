// Which files are models: by a look at the beginning, since most files that end in .xml are something else.
'use strict';

const vscode = require('vscode');
const { IR, parted } = require('./configuration');

const LANGUAGE = 'openvino-ir';
const KEY = 'stepper.models'; // a context key: the paths that have "Debug loop" in the explorer
const MOST = 2000; // files that are looked at
const HEAD = 1024; // bytes of each
const LINES = 20;

class Models {
  /** `head` returns (later) the first bytes of a file as text. */
  constructor(head) {
    this.head = head;
    this.paths = {};
  }

  /** Look at what is open and at what lies in the workspace, now and from now on. */
  begin(context) {
    const watcher = vscode.workspace.createFileSystemWatcher('**/*.xml', false, true, false);
    context.subscriptions.push(
      vscode.workspace.onDidOpenTextDocument((document) => this.opened(document)),
      watcher,
      watcher.onDidCreate(async (uri) => (await this.looked(uri)) && this.told()),
      watcher.onDidDelete((uri) => this.forget(uri)),
    );
    vscode.workspace.textDocuments.forEach((document) => this.opened(document));
    return this.search();
  }

  /** Give an IR its language, by which F5 finds the debugger. */
  opened(document) {
    if (document.languageId !== 'xml' || !IR.test(document.getText(new vscode.Range(0, 0, LINES, 0)))) return;
    vscode.languages.setTextDocumentLanguage(document, LANGUAGE);
  }

  async search() {
    for (const uri of await vscode.workspace.findFiles('**/*.xml', undefined, MOST)) await this.looked(uri);
    this.told();
  }

  /** Look at a file, and keep its path where it is a model; of a `model.xml` the folder is a case. */
  async looked(uri) {
    const text = await this.head(uri, HEAD).catch(() => '');
    if (!IR.test(text)) return false;
    for (const path of this.of(uri)) this.paths[path] = true;
    return true;
  }

  forget(uri) {
    for (const path of this.of(uri)) delete this.paths[path];
    this.told();
  }

  of(uri) {
    const [folder, name] = parted(uri.fsPath);
    return name === 'model.xml' ? [uri.fsPath, folder.slice(0, -1)] : [uri.fsPath];
  }

  told() {
    vscode.commands.executeCommand('setContext', KEY, { ...this.paths });
  }
}

module.exports = { LANGUAGE, Models };
