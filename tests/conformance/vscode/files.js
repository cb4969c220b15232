// An extension for tests: in a browser it gives the workbench the files of one folder, as a desktop has them.
// FILES is put in by serve.js.
'use strict';

const vscode = require('vscode');

async function asked(operation, uri, body) {
  const address = `${FILES}/${operation}?${encodeURIComponent(uri.path)}`;
  const answer = await fetch(address, body === undefined ? {} : { method: 'POST', body });
  if (!answer.ok) throw vscode.FileSystemError.FileNotFound(uri);
  return answer;
}

const changed = new vscode.EventEmitter();
const files = {
  onDidChangeFile: changed.event,
  watch: () => ({ dispose() {} }),
  stat: async (uri) => (await asked('stat', uri)).json(),
  readDirectory: async (uri) => (await asked('list', uri)).json(),
  readFile: async (uri) => new Uint8Array(await (await asked('read', uri)).arrayBuffer()),
  writeFile: async (uri, content) => void (await asked('write', uri, content)),
  createDirectory() {},
  delete() {},
  rename() {},
};

exports.activate = (context) => {
  context.subscriptions.push(vscode.workspace.registerFileSystemProvider('folder', files, { isCaseSensitive: true }));
};
