// What `stepper check` finds stands in the list of problems. On a line with a finding of a run a repair is offered.
'use strict';

const vscode = require('vscode');
const { parted } = require('./configuration');
const { LANGUAGE } = require('./models');

const SOURCE = 'stepper';
const OF_A_RUN = /^D/;
const NO_EDIT = 'stepper knows no edit that heals this run.';
const CHANGES_MORE = 'The edits that heal this run change healthy outputs as well.';

class Findings {
  /** `output` returns (later) what the program writes; `given` the options that name the inputs of a model. */
  constructor(output, given) {
    this.output = output;
    this.given = given;
  }

  begin(context) {
    this.listed = vscode.languages.createDiagnosticCollection(SOURCE);
    const actions = { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] };
    context.subscriptions.push(
      this.listed,
      vscode.commands.registerCommand('stepper.check', (uri) => this.check(uri || front())),
      vscode.commands.registerCommand('stepper.repair', (uri, rule) => this.repair(uri, rule)),
      vscode.languages.registerCodeActionsProvider({ language: LANGUAGE }, this, actions),
    );
  }

  /** Run the model, and list what is found on its lines. */
  check(uri) {
    return this.working('Check', uri, async (inputs) => {
      const { findings } = JSON.parse(await this.output(uri, 'check', uri.fsPath, ...inputs, '--json'));
      this.listed.set(uri, findings.map(listed));
      if (findings.length) await vscode.commands.executeCommand('workbench.actions.view.problems');
      else vscode.window.showInformationMessage('stepper check: nothing is wrong.');
    });
  }

  provideCodeActions(document, _range, { diagnostics }) {
    const found = diagnostics.filter((one) => one.source === SOURCE && OF_A_RUN.test(one.code));
    return found.map((one) => {
      const title = `Find the edit that repairs ${one.code}`;
      const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
      action.diagnostics = [one];
      action.command = { title, command: 'stepper.repair', arguments: [document.uri, one.code] };
      return action;
    });
  }

  /** Write the repaired model beside the model, and show how the two differ; say so where there is no such edit. */
  repair(uri, rule) {
    return this.working('Repair', uri, async (inputs) => {
      const [folder, name] = parted(uri.fsPath);
      const path = `${folder}${name.replace(/\.xml$/i, '')}.repaired.xml`;
      const text = await this.output(uri, 'fix', uri.fsPath, ...inputs, '--finding', rule, '-o', path, '--json');
      const { heals: [best], refused } = JSON.parse(text);
      if (!best) return void vscode.window.showWarningMessage(refused ? CHANGES_MORE : NO_EDIT);
      await vscode.commands.executeCommand('vscode.diff', uri, uri.with({ path: vscode.Uri.file(path).path }), `${name}: repaired`);
      const { edit: { layer, after }, healed, iterations } = best;
      return void vscode.window.showInformationMessage(`${layer.type} '${layer.name}': ${after}. It heals ${healed} of ${iterations} iterations.`);
    });
  }

  /** Work with the inputs of a model, which may be asked for; what goes wrong is shown. */
  async working(title, uri, work) {
    const inputs = uri && (await this.given(uri.fsPath));
    if (!inputs) return;
    const place = { location: vscode.ProgressLocation.Window, title: `stepper: ${title}` };
    try {
      await vscode.window.withProgress(place, () => work(inputs));
    } catch (error) {
      vscode.window.showErrorMessage(error.message);
    }
  }
}

function front() {
  return vscode.window.activeTextEditor && vscode.window.activeTextEditor.document.uri;
}

function listed({ id, severity, line, text }) {
  const place = new vscode.Range(Math.max(line - 1, 0), 0, Math.max(line - 1, 0), 1000);
  const kinds = { error: 'Error', warning: 'Warning' };
  const found = new vscode.Diagnostic(place, text, vscode.DiagnosticSeverity[kinds[severity] || 'Information']);
  return Object.assign(found, { source: SOURCE, code: id });
}

module.exports = { Findings };
