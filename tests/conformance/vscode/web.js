// The extension in the workbench of a browser, for tests: its adapter is at the other end of a WebSocket.
// BRIDGE and LAUNCH are put in by serve.js.
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

exports.activate = (context) => {
  extension.activate(context, () => new vscode.DebugAdapterInlineImplementation(new BridgedAdapter()));
  // A session that begins with the workbench itself finds no provider for texts of adapters yet.
  setTimeout(() => vscode.debug.startDebugging(undefined, LAUNCH), 6000);
};
