// The editor of models that are no text, such as .onnx, and another one of an IR: the figure, and a button that debugs.
'use strict';

const vscode = require('vscode');
const { nonce, themed } = require('./view');

const VIEW = 'stepper.model';

class ModelEditor {
  /** `output` returns (later) what the program writes; `debug` begins a session of a file. */
  constructor(output, debug) {
    this.output = output;
    this.debug = debug;
  }

  openCustomDocument(uri) {
    return { uri, dispose() {} };
  }

  async resolveCustomEditor(document, panel) {
    panel.webview.options = { enableScripts: true, localResourceRoots: [] };
    panel.webview.onDidReceiveMessage(() => this.debug(document.uri));
    panel.webview.html = page('<p class="note">The figure is drawn…</p>', panel.webview.cspSource);
    panel.webview.html = page(await this.figure(document.uri), panel.webview.cspSource);
  }

  /** Return the figure of the body of the loop; that of the model where there is not one loop. */
  async figure(uri) {
    const words = ['export', uri.fsPath, '--theme', 'page', '--quiet'];
    try {
      return await this.output(uri, ...words).catch(() => this.output(uri, ...words, '--view', 'model'));
    } catch (error) {
      return `<p class="note" role="alert">${escaped(error.message)}</p>`;
    }
  }
}

function escaped(text) {
  return text.replace(/[&<>]/g, (one) => `&#${one.charCodeAt(0)};`);
}

function page(content, source) {
  const own = nonce();
  const policy = `default-src 'none'; img-src data:; style-src ${source} 'unsafe-inline'; script-src 'nonce-${own}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>Model</title>
<style>
body { margin: 0; padding: 0; color: var(--vscode-foreground); }
nav { position: sticky; top: 0; padding: 8px; background: var(--vscode-editor-background); }
button { border: 0; padding: 4px 14px; font: inherit; cursor: pointer; color: var(--vscode-button-foreground); background: var(--vscode-button-background); }
button:hover { background: var(--vscode-button-hoverBackground); }
button:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 2px; }
svg { max-width: 100%; height: auto; display: block; margin: 0 auto; }
.note { padding: 8px; white-space: pre-wrap; }
</style>
</head>
<body>
<nav><button id="debug" title="Run the model and stop at its start (F5)">Debug</button></nav>
<main>${content}</main>
<script nonce="${own}">
(${themed})();
const vscode = acquireVsCodeApi();
document.getElementById('debug').onclick = () => vscode.postMessage({});
</script>
</body>
</html>`;
}

module.exports = { ModelEditor, VIEW };
