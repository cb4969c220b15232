// The extension in the workbench of a browser, for tests: its programs are at the other end of a WebSocket.
// BRIDGE and PROGRAM are put in by serve.js.
'use strict';

const vscode = require('vscode');
const extension = require('./extension');

class BridgedAdapter {
  constructor() {
    this.sent = new vscode.EventEmitter();
    this.onDidSendMessage = this.sent.event;
    this.waiting = [];
    this.socket = new WebSocket(BRIDGE);
    this.socket.onmessage = (message) => this.sent.fire(JSON.parse(message.data));
    this.socket.onopen = () => {
      for (const text of this.waiting) this.socket.send(text);
      this.waiting = undefined;
    };
  }
  handleMessage(message) {
    const text = JSON.stringify(message);
    if (this.waiting) this.waiting.push(text);
    else this.socket.send(text);
  }
  dispose() {
    this.socket.close();
  }
}

const host = {
  adapter: () => new vscode.DebugAdapterInlineImplementation(new BridgedAdapter()),
  words: async () => ['stepper'],
  install() {},
  file: (path) => vscode.Uri.from({ scheme: 'folder', path }), // a browser has no files of its own
  head: async (uri, count) => new TextDecoder().decode((await vscode.workspace.fs.readFile(uri)).slice(0, count)),
  output: async (_uri, ...words) => {
    const answer = await fetch(PROGRAM, { method: 'POST', body: JSON.stringify(words) });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.text();
  },
};

exports.activate = (context) => void extension.activate(context, host);
