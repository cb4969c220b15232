// Where the program is: what the setting names, the chosen Python environment's, or that of the PATH. Knows nothing of VS Code.
'use strict';

const path = require('path');

const DISTRIBUTION = 'loop-stepper'; // the name on the index of packages
const isWindows = process.platform === 'win32';
const BIN = isWindows ? 'Scripts' : 'bin';
const NAMES = isWindows ? ['stepper.exe', 'stepper.cmd'] : ['stepper'];
const PYTHON = isWindows ? 'python.exe' : 'python';

/**
 * Return the program and its first words; undefined where there is none. `python` is that of the chosen environment, if
 * known; `workspace` a folder that may have an environment of its own.
 */
function found(setting, python, searchPath, isFile, workspace) {
  if (setting && setting.length) return setting;
  const folders = [...environments(python, workspace), ...(searchPath || '').split(path.delimiter).filter(Boolean)];
  for (const folder of folders) {
    for (const name of NAMES) {
      const program = path.join(folder, name);
      if (isFile(program)) return [program];
    }
  }
  return undefined;
}

/** Return the folders of the programs of the environments that are in question. */
function environments(python, workspace) {
  const own = workspace ? ['.venv', 'venv'].map((name) => path.join(workspace, name, BIN)) : [];
  return python ? [path.dirname(python), ...own] : own;
}

/** Return the line for a terminal that installs the program where `found` looks for it. */
function installing(python, isFile, workspace) {
  const pythons = environments(undefined, workspace).map((folder) => path.join(folder, PYTHON));
  const chosen = python || pythons.find(isFile) || (isWindows ? 'py' : 'python3');
  const call = isWindows && chosen.includes(' ') ? `& "${chosen}"` : chosen.includes(' ') ? `"${chosen}"` : chosen;
  return `${call} -m pip install --upgrade ${DISTRIBUTION}`;
}

module.exports = { DISTRIBUTION, found, installing };
