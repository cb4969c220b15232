// The view of the loop: it asks the adapter what stands where at each stop, and shows it. It works nothing out itself.
'use strict';

const vscode = require('vscode');
const { nonce, page } = require('./view');

const SOON = 600; // milliseconds: the editor opens the listing first, and the view beside it
const LAYOUT = { orientation: 0, groups: [{ size: 0.62 }, { size: 0.38 }] }; // the listing has room for values behind lines

class LoopView {
  constructor() {
    this.panel = undefined;
    this.session = undefined;
    this.figure = -1;
    this.hasOverview = false;
    this.opened = new WeakSet(); // sessions for which it was opened: who closes it is not shown it again
  }

  /** Show the view beside the editor; the focus stays where it is. */
  open() {
    if (this.panel) {
      this.panel.reveal(undefined, true);
      return;
    }
    const isAlone = vscode.window.tabGroups.all.length === 1;
    const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const options = { enableScripts: true, retainContextWhenHidden: true, localResourceRoots: [] };
    const panel = vscode.window.createWebviewPanel('stepper.follow', 'Loop', place, options);
    this.panel = panel;
    if (isAlone) vscode.commands.executeCommand('vscode.setEditorLayout', LAYOUT);
    panel.onDidDispose(() => (this.panel = undefined));
    panel.webview.onDidReceiveMessage((message) => this.heard(message));
    panel.webview.html = page(nonce(), panel.webview.cspSource);
  }

  /** A session began, or another one is in front. */
  follow(session) {
    this.session = session;
    this.figure = -1;
    this.hasOverview = false;
    if (session) this.refresh();
  }

  /** A session has ended. */
  forget(session) {
    if (this.session !== session) return;
    this.session = undefined;
    this.post({ kind: 'ended' });
  }

  /** The adapter of a session has sent something. */
  sent(session, message) {
    if (message.type !== 'event' || session.type !== 'stepper') return;
    if (message.event === 'stopped') {
      if (!this.opened.has(session)) {
        this.opened.add(session);
        if (vscode.workspace.getConfiguration('stepper').get('showLoop')) setTimeout(() => this.open(), SOON);
      }
      if (this.session !== session) this.follow(session);
      else this.refresh();
    }
    if (message.event === 'invalidated') this.hasOverview = false; // another branch has another run
  }

  async heard(message) {
    if (message.kind === 'ready') {
      this.figure = -1;
      this.hasOverview = false; // the page is new, and empty
      await this.refresh();
    } else if (message.kind === 'overview') await this.overview();
    else if (message.kind === 'goto') await this.said(`goto ${message.address}`, 'repl');
    else if (message.kind === 'value') await this.said(message.address, 'watch', `${message.address}  `);
  }

  /** Show where the session stands. */
  async refresh() {
    const session = this.session;
    if (!session || !this.panel) return;
    const stop = await this.asked('stepper/stop');
    if (!stop || session !== this.session) return;
    if (stop.figure !== this.figure) {
      const figure = await this.asked('stepper/figure', { figure: stop.figure });
      if (!figure || session !== this.session) return;
      this.figure = stop.figure;
      this.post({ kind: 'figure', figure });
    }
    this.post({ kind: 'stop', stop });
  }

  async overview() {
    if (this.hasOverview) return;
    const found = await this.asked('stepper/overview');
    if (!found) return;
    this.hasOverview = true;
    this.post({ kind: 'overview', html: found.html });
  }

  /** Say something to the debugger, and show what it answers. */
  async said(expression, context, before = '') {
    try {
      const found = this.session && (await this.session.customRequest('evaluate', { expression, context }));
      if (found && context === 'watch') this.post({ kind: 'value', text: `${before}${found.result}` });
    } catch (error) {
      this.post({ kind: 'value', text: String(error.message || error) });
    }
  }

  async asked(command, more = {}) {
    try {
      return this.session && (await this.session.customRequest(command, more));
    } catch {
      return undefined; // an older stepper, or a session that ends just now
    }
  }

  post(message) {
    if (this.panel) this.panel.webview.postMessage(message);
  }
}

module.exports = { LoopView };
