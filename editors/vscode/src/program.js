// Where the program is: what the setting names, the chosen Python environment's, or that of the PATH. Knows nothing of VS Code.
'use strict';

const path = require('path');

const BIN = process.platform === 'win32' ? 'Scripts' : 'bin';
const NAMES = process.platform === 'win32' ? ['stepper.exe', 'stepper.cmd'] : ['stepper'];

/**
 * Return the program and its first words; undefined where there is none. `python` is that of the chosen environment, if
 * known; `workspace` a folder that may have an environment of its own.
 */
function found(setting, python, searchPath, isFile, workspace) {
  if (setting && setting.length) return setting;
  const folders = python ? [path.dirname(python)] : [];
  if (workspace) folders.push(...['.venv', 'venv'].map((name) => path.join(workspace, name, BIN)));
  folders.push(...(searchPath || '').split(path.delimiter).filter(Boolean));
  for (const folder of folders) {
    for (const name of NAMES) {
      const program = path.join(folder, name);
      if (isFile(program)) return [program];
    }
  }
  return undefined;
}

module.exports = { found };
