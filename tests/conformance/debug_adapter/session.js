// Sessions of a real client, @vscode/debugadapter-testsupport: node session.js NODE_MODULES PYTHON ADAPTER.py FOLDER [PORT TOKEN]
// Prints a line for each session that went well; an assertion that fails ends it with exit code 1.
const [modules, python, adapter, samples, port, token] = process.argv.slice(2);
const { DebugClient } = require(`${modules}/@vscode/debugadapter-testsupport`);
const assert = require('assert');
const fs = require('fs');

const sent = new Set();
const { send } = DebugClient.prototype;
DebugClient.prototype.send = function (command, ...rest) { sent.add(command); return send.call(this, command, ...rest); };

class Session {
  static async begin(name, configure = async () => {}, launch = {}, attach = undefined) {
    const session = new Session();
    const client = session.client = new DebugClient(python, adapter, 'stepper');
    await client.start(port ? Number(port) : undefined);
    client.defaultTimeout = 20000;
    const folder = `${samples}/${name}`;
    session.capabilities = (await client.initializeRequest()).body;
    const initialized = client.waitForEvent('initialized');
    const given = { model: `${folder}/model.xml`, inputs: `${folder}/inputs.npz`, ...launch };
    await client.customRequest(attach ? 'attach' : 'launch', { token, ...(attach ?? given) });
    await initialized;
    session.source = (await client.customRequest('loadedSources')).body.sources[0];
    session.lines = fs.readFileSync(session.source.path, 'utf8').split('\n');
    await configure(session);
    const stopped = client.waitForEvent('stopped');
    await client.configurationDoneRequest();
    session.entry = (await stopped).body;
    return session;
  }
  line(begins) { return this.lines.findIndex((line) => line.trim().startsWith(begins)) + 1; }
  async go(verb, more = {}) {
    const stopped = this.client.waitForEvent('stopped');
    await this.client.customRequest(verb, { threadId: 1, ...more });
    return (await stopped).body;
  }
  async frames() { return (await this.client.stackTraceRequest({ threadId: 1 })).body.stackFrames; }
  async scope(frameId, name) {
    const scopes = (await this.client.scopesRequest({ frameId })).body.scopes;
    const { variablesReference } = scopes.find((scope) => scope.name === name);
    const found = (await this.client.variablesRequest({ variablesReference })).body.variables;
    return { variablesReference, found, get: (one) => found.find((variable) => variable.name === one) };
  }
  async value(expression, more = {}) {
    return (await this.client.evaluateRequest({ expression, context: 'watch', ...more })).body.result;
  }
  end() { return this.client.stop(); }
}

async function overflow() {
  const s = await Session.begin('rwkv_overflow', (s) => s.client.setExceptionBreakpointsRequest({ filters: ['nan'] }));
  assert(s.capabilities.supportsStepBack && s.capabilities.supportsDataBreakpoints && s.capabilities.supportsReadMemoryRequest);
  assert.equal(s.entry.reason, 'entry');
  const stop = await s.go('continue');
  assert.equal(stop.reason, 'exception');
  const [frame] = await s.frames();
  assert(/@8/.test(frame.name) && frame.line === s.line('wkv ='), frame.name);
  const info = (await s.client.customRequest('exceptionInfo', { threadId: 1 })).body;
  assert(info.exceptionId === 'nan' && /exp_key/.test(info.description));
  assert(/NaN/.test((await s.scope(frame.id, 'Values')).get('wkv').value));
  await s.go('stepBack');
  const [before] = await s.frames();
  assert.equal(before.line, frame.line - 1);
  assert.equal((await s.scope(before.id, 'Values')).get('wkv').value, 'not computed yet in iteration 8');
  const scope = (await s.scope(before.id, 'Values')).variablesReference;
  const later = (await s.client.customRequest('dataBreakpointInfo', { variablesReference: scope, name: 'wkv' })).body;
  await s.client.setExceptionBreakpointsRequest({ filters: [] });
  const watched = (await s.client.customRequest('setDataBreakpoints', { breakpoints: [{ dataId: later.dataId, accessType: 'write' }] })).body;
  assert(watched.breakpoints[0].verified, JSON.stringify(watched));  // of a value that is not there yet
  assert.equal((await s.go('continue')).reason, 'data breakpoint');
  assert.equal((await s.frames())[0].line, s.line('wkv ='));
  await s.client.customRequest('setDataBreakpoints', { breakpoints: [] });
  const [target] = (await s.client.customRequest('gotoTargets', { source: s.source, line: s.line('exp_key =') })).body.targets;
  assert.equal((await s.go('goto', { targetId: target.id })).reason, 'goto');
  assert.equal((await s.frames())[0].line, s.line('exp_key ='));
  const values = await s.scope(1 + 1, 'Values');
  const set = await s.client.setVariableRequest({ variablesReference: values.get('exp_key').variablesReference, name: '[0]', value: '7' });
  assert(/^f32\[8\] \[7., 7.,/.test(set.body.value), set.body.value);
  assert.equal(await s.value('exp_key[0,7]'), '7.0');
  await s.client.customRequest('setExpression', { expression: 'exp_key', value: 'exp_key * 0 + 1' });
  assert.equal(await s.value('max(exp_key)'), '1.0');
  assert(/edit-1/.test((await s.client.threadsRequest()).body.threads[0].name));
  await s.client.setExceptionBreakpointsRequest({ filters: [] });
  assert.equal((await s.go('reverseContinue')).reason, 'entry');
  await s.end();
}

async function nested() {
  let set;
  const s = await Session.begin('nested_loop', async (s) => {
    const breakpoints = [{ line: s.line('swaps_next ='), condition: 'swaps_next > 1' }, { line: s.line('left ='), logMessage: 'left {left}' }];
    set = (await s.client.setBreakpointsRequest({ source: s.source, breakpoints })).body.breakpoints;
  });
  assert(set.every((one) => one.verified), JSON.stringify(set));
  const said = s.client.waitForEvent('output');
  const stop = await s.go('continue');
  assert.deepEqual([stop.reason, stop.hitBreakpointIds], ['breakpoint', [set[0].id]]);
  assert(/^left /.test((await said).body.output));
  const frames = await s.frames();
  assert.deepEqual(frames.map((frame) => frame.line), [s.line('swaps_next ='), s.line('pairs_of_neighbours ='), s.line('passes =')]);
  assert(/@1/.test(frames[0].name) && /@0/.test(frames[1].name));
  const values = await s.scope(frames[0].id, 'Values');
  const tensor = values.get('values');
  const page = (await s.client.variablesRequest({ variablesReference: tensor.variablesReference, filter: 'indexed', start: 1, count: 2 })).body.variables;
  assert.deepEqual(page.map((one) => one.name), ['[1]', '[2]']);
  assert.equal(await s.value(page[0].evaluateName), page[0].value);
  const memory = (await s.client.customRequest('readMemory', { memoryReference: tensor.memoryReference, offset: 4, count: 4 })).body;
  assert.equal(Buffer.from(memory.data, 'base64').readFloatLE(0), Number(page[0].value));
  assert.equal(await s.value('swaps_next * 2', { frameId: frames[0].id }), '4');
  assert(/merged/.test((await s.client.evaluateRequest({ expression: 'info ports', context: 'repl' })).body.result));
  assert((await s.client.completionsRequest({ text: 'swaps_n', column: 8 })).body.targets.some((one) => one.text === 'swaps_next'));
  const [carried] = (await s.scope(frames[0].id, 'Carried')).found;
  assert.equal((await s.client.variablesRequest({ variablesReference: carried.variablesReference })).body.variables.length, 3);
  for (const scope of ['Scan outputs', 'Ports', 'Condition']) await s.scope(frames[0].id, scope);
  const about = (await s.client.customRequest('dataBreakpointInfo', { variablesReference: values.variablesReference, name: 'swaps' })).body;
  await s.client.setBreakpointsRequest({ source: s.source, breakpoints: [] });
  const data = (await s.client.customRequest('setDataBreakpoints', { breakpoints: [{ dataId: about.dataId, accessType: 'write' }] })).body;
  assert(data.breakpoints[0].verified, JSON.stringify(data));
  assert.equal((await s.go('continue')).reason, 'data breakpoint');
  await s.client.customRequest('setDataBreakpoints', { breakpoints: [] });
  const named = await s.client.setFunctionBreakpointsRequest({ breakpoints: [{ name: 'passes::keep_going', hitCondition: '== 1' }] });
  assert(named.body.breakpoints[0].verified, JSON.stringify(named.body));
  assert.equal((await s.go('continue')).reason, 'function breakpoint');
  await s.client.setFunctionBreakpointsRequest({ breakpoints: [] });
  const outer = (await s.frames())[0];
  assert.equal((await s.go('restartFrame', { frameId: outer.id })).reason, 'restart');
  await s.go('next');
  const inner = (await s.client.customRequest('stepInTargets', { frameId: outer.id })).body.targets;
  assert(/pairs_of_neighbours/.test(inner[0].label));
  await s.go('stepIn', { targetId: inner[0].id });
  assert.equal((await s.frames()).length, 3);
  await s.go('stepOut');
  await s.go('stepOut');
  assert.equal((await s.go('restart')).reason, 'entry');
  await s.end();
}

async function sequence() {
  const s = await Session.begin('specification_lstm', undefined, { stopOnEntry: true });
  await s.go('stepIn');
  for (let [frame] = await s.frames(); !/@1 /.test(frame.name); [frame] = await s.frames()) await s.go('stepIn');
  const lines = [];
  for (let count = 0; count < 8; count++) { lines.push((await s.frames())[0].line); await s.go('next'); }
  for (let count = 0; count < 8; count++) { await s.go('stepBack'); assert.equal((await s.frames())[0].line, lines.pop()); }
  const [scan] = (await s.scope((await s.frames())[0].id, 'Scan outputs')).found;
  assert(/1 piece/.test(scan.value), scan.value);
  await s.client.customRequest('nonsense').then(() => assert.fail('there is no such request'), (error) => assert(/no request/.test(error.message)));
  assert.equal((await s.go('continue')).reason, 'end');
  const outputs = await s.scope((await s.frames())[0].id, 'Outputs');
  assert(outputs.found.length > 0 && outputs.found[0].indexedVariables > 0);
  await s.go('stepBack');
  await s.end();
}

async function attached() {
  const recording = `${samples}/run.sqlite`;
  const s = await Session.begin('nested_loop', undefined, {}, { recording });
  assert.equal(s.entry.reason, 'end');
  const back = await s.go('stepBack');
  assert.equal(back.reason, 'step');
  const listed = (await s.client.customRequest('source', { source: s.source, sourceReference: 0 })).body.content;
  assert.equal(listed, s.lines.join('\n'));
  const line = s.line('swaps_next =');
  const places = (await s.client.customRequest('breakpointLocations', { source: s.source, line, endLine: line + 1 })).body.breakpoints;
  assert.equal(places[0].line, line);
  await s.go('restart');
  await s.client.setBreakpointsRequest({ source: s.source, breakpoints: [{ line, hitCondition: '3' }] });
  const hit = await s.go('continue');
  assert.equal(hit.reason, 'breakpoint');
  await s.client.pauseRequest({ threadId: 1 });  // nothing is under way
  await s.client.customRequest('cancel', { progressId: 'none' });
  const last = (await s.frames())[0];
  const { values } = (await s.client.customRequest('stepper/values', { frameId: last.id, line: 1, endLine: s.lines.length })).body;
  assert.equal(values.find((one) => one.line === last.line).text, await s.value('swaps_next'));
  const xml = { path: `${samples}/nested_loop/model.xml` };
  const [moved] = (await s.client.setBreakpointsRequest({ source: xml, breakpoints: [{ line: 70 }] })).body.breakpoints;
  assert(moved.verified && moved.source.path === s.source.path);
  const view = (await s.client.customRequest('stepper/stop')).body;
  assert(view && typeof view === 'object');
  assert(/<svg/.test(JSON.stringify((await s.client.customRequest('stepper/figure', { figure: view.figure ?? 0 })).body)));
  assert(/data-goto/.test((await s.client.customRequest('stepper/overview')).body.html));
  const over = s.client.waitForEvent('terminated');
  await s.client.customRequest('terminate');
  await over;
}

(async () => {
  for (const session of [overflow, nested, sequence, attached]) { await session(); console.log(session.name); }
  console.log(`requests: ${[...sent].sort().join(' ')}`);
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
