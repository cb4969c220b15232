// The page of the view: the figure of the body at the stop, and the overview of the run. It has no network.
'use strict';

/** Return the page; `nonce` admits its own script alone. */
function page(nonce, source) {
  const policy = `default-src 'none'; img-src data:; style-src ${source} 'unsafe-inline'; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>Loop</title>
<style>
body { margin: 0; padding: 0; color: var(--vscode-foreground); background: var(--vscode-sideBar-background); }
nav { position: sticky; top: 0; z-index: 1; display: flex; gap: 2px; padding: 4px; background: inherit; }
nav button { border: 0; padding: 2px 8px; cursor: pointer; font: inherit; color: inherit; background: none; border-bottom: 2px solid transparent; }
nav button[aria-selected="true"] { border-color: var(--vscode-focusBorder); font-weight: 600; }
nav button:focus-visible { outline: 1px solid var(--vscode-focusBorder); }
#figure { overflow: auto; }
#figure svg { max-width: 100%; height: auto; display: block; margin: 0 auto; }
#figure.whole svg { max-width: none !important; }
nav .end { margin-left: auto; }
#figure [data-address] { cursor: pointer; }
#figure [data-address]:focus-visible .box, #figure [data-address]:hover .box { stroke-width: 2; }
#figure .followed .box { stroke: #b97a00; stroke-width: 3; fill: #ffe9a8; }
#figure .followed text { fill: #1f2328 !important; }
#figure [role="alert"] { padding: 8px; }
#value { position: sticky; bottom: 0; margin: 0; padding: 4px 8px; white-space: pre-wrap; overflow-wrap: anywhere; font: 12px var(--vscode-editor-font-family, monospace); background: var(--vscode-editorWidget-background); border-top: 1px solid var(--vscode-widget-border, #8884); }
#value:empty { display: none; }
.note { padding: 8px; opacity: 0.8; }
[hidden] { display: none !important; }
</style>
</head>
<body>
<nav role="tablist">
<button role="tab" data-tab="figure" aria-selected="true">body</button>
<button role="tab" data-tab="overview" aria-selected="false">overview</button>
<button class="end" data-size title="The figure in its own size, or as wide as the view" aria-pressed="false">1:1</button>
</nav>
<main>
<div id="figure" role="tabpanel"><p class="note">The figure of the loop stands here while a model is debugged.</p></div>
<div id="overview" role="tabpanel" hidden></div>
</main>
<pre id="value" role="status"></pre>
<script nonce="${nonce}">(${themed})();(${script})()</script>
</body>
</html>`;
}

/** The script of the page: it shows what it is sent, and says what was clicked. */
function script() {
  const vscode = acquireVsCodeApi();
  const at = (id) => document.getElementById(id);
  let box = '';
  let column = '';

  function show(tab) {
    for (const button of document.querySelectorAll('[data-tab]')) {
      button.setAttribute('aria-selected', String(button.dataset.tab === tab));
      at(button.dataset.tab).hidden = button.dataset.tab !== tab;
    }
    vscode.setState({ tab });
    if (tab === 'overview') vscode.postMessage({ kind: 'overview' });
  }

  function mark() {
    for (const old of document.querySelectorAll('.followed')) old.classList.remove('followed');
    const now = box && at(box);
    if (now) {
      now.classList.add('followed');
      now.scrollIntoView({ block: 'center', inline: 'center' });
    }
    for (const button of document.querySelectorAll('[data-goto]')) {
      button.classList.toggle('now', Boolean(column) && button.dataset.goto === column);
    }
  }

  function drawn(figure) {
    at('figure').innerHTML = figure.svg || '';
    if (!figure.svg) {
      const text = document.createElement('p');
      text.setAttribute('role', 'alert');
      text.textContent = figure.title;
      at('figure').append(text);
    }
    for (const [id, address] of Object.entries(figure.addresses)) {
      const element = at(id);
      if (!element) continue;
      element.dataset.address = address;
      element.setAttribute('tabindex', '0');
      element.setAttribute('role', 'button');
    }
  }

  window.addEventListener('message', ({ data }) => {
    if (data.kind === 'figure') drawn(data.figure);
    if (data.kind === 'stop') {
      box = data.stop.box;
      column = data.stop.column;
      at('value').textContent = '';
      // What was asked for during a move may have gone unanswered.
      if (!at('overview').hidden && !at('overview').innerHTML) vscode.postMessage({ kind: 'overview' });
    }
    if (data.kind === 'overview') at('overview').innerHTML = data.html;
    if (data.kind === 'value') at('value').textContent = data.text;
    if (data.kind === 'ended') at('value').textContent = 'The session has ended.';
    mark();
  });
  document.addEventListener('click', ({ target }) => {
    const tab = target.closest('[data-tab]');
    const size = target.closest('[data-size]');
    const column = target.closest('[data-goto]');
    const operation = target.closest('[data-address]');
    if (size) {
      size.setAttribute('aria-pressed', String(at('figure').classList.toggle('whole')));
      mark();
    } else if (tab) show(tab.dataset.tab);
    else if (column && column.dataset.goto) vscode.postMessage({ kind: 'goto', address: column.dataset.goto });
    else if (operation) vscode.postMessage({ kind: 'value', address: operation.dataset.address });
  });
  document.addEventListener('keydown', (event) => {
    const operation = event.target.closest && event.target.closest('[data-address]');
    if (operation && (event.key === 'Enter' || event.key === ' ')) {
      event.preventDefault();
      vscode.postMessage({ kind: 'value', address: operation.dataset.address });
    }
  });
  const state = vscode.getState();
  if (state && state.tab) show(state.tab);
  vscode.postMessage({ kind: 'ready' });
}

/** In a page: figures and overview follow the theme of the workbench, which the body's class tells. */
function themed() {
  const follow = () => {
    const isLight = /\bvscode-(light|high-contrast-light)\b/.test(document.body.className);
    document.documentElement.dataset.theme = isLight ? 'light' : 'dark';
  };
  follow();
  new MutationObserver(follow).observe(document.body, { attributes: true, attributeFilter: ['class'] });
}

/** Return a number that admits one script to a page. */
function nonce() {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(24));
  return Array.from(bytes, (byte) => letters[byte % letters.length]).join('');
}

module.exports = { nonce, page, themed };
