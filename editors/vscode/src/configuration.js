// What a launch configuration lacks, and which files are models. Knows nothing of VS Code.
'use strict';

const MODEL = /\.(xml|onnx|tflite|pb|pdmodel)$/i;
const IR = /^\uFEFF?(\s|<\?xml[^>]*\?>|<!--[\s\S]*?-->)*<net[\s>]/; // the beginning of an OpenVINO IR
const GIVES_INPUTS = ['inputs', 'input', 'calls'];

/** Return the folder and the name of a path. */
function parted(path) {
  const at = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\'));
  return [path.slice(0, at + 1), path.slice(at + 1)];
}

/** Return the paths where the inputs of a model may lie, the likeliest first. */
function inputsBeside(model) {
  const [folder, name] = parted(model);
  return [`${folder}inputs.npz`, `${folder}${name.replace(/\.[^.]*$/, '')}.npz`];
}

/** True if a configuration says what the inputs are. */
function hasInputs(configuration) {
  return GIVES_INPUTS.some((name) => configuration[name] !== undefined && configuration[name] !== '');
}

/**
 * Return the configuration with what it lacks; `exists` says (later) whether a file is there.
 * `active` is the path of the model in front, or undefined. Throws an Error with what to do where no model is known.
 */
async function completed(configuration, active, exists) {
  const found = { ...configuration };
  if (!found.type && !found.request) Object.assign(found, { type: 'stepper', request: 'launch', name: 'Debug loop' });
  if (found.debugServer || found.request === 'attach') return found;
  found.model = found.model || found.program;
  if (!found.model && active && MODEL.test(active)) found.model = active;
  if (!found.model) {
    throw new Error('Which model? Open an .xml or .onnx, or name a "model" in launch.json.');
  }
  if (!hasInputs(found) && MODEL.test(found.model)) {
    for (const path of inputsBeside(found.model)) {
      if (await exists(path)) {
        found.inputs = path;
        break;
      }
    }
  }
  return found;
}

module.exports = { IR, MODEL, completed, hasInputs, inputsBeside, parted };
