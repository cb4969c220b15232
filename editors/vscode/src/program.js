// Where the program is: what the setting names, the chosen Python environment's, or that of the PATH. Knows nothing of VS Code.
'use strict';

const path = require('path');

const NAMES = process.platform === 'win32' ? ['stepper.exe', 'stepper.cmd'] : ['stepper'];

/** Return the program and its first words; undefined where there is none. `python`: that of the environment, if known. */
function found(setting, python, searchPath, isFile) {
  if (setting && setting.length) return setting;
  const folders = python ? [path.dirname(python)] : [];
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
