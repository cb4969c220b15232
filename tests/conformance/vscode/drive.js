// Uses the workbench as a person does, with its own mouse and keys: node drive.js NODE_MODULES CHROMIUM ADDRESS FOLDER
// Prints a line of JSON for each thing that was done, and writes pictures into the folder.
'use strict';

const [modules, chromium, address, folder] = process.argv.slice(2);
const puppeteer = require(`${modules}/puppeteer-core`);
const SECONDS = 120;

const flags = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--force-color-profile=srgb',
];

class Workbench {
  constructor(page) {
    this.page = page;
  }
  /** What stands on the toolbar, in the call stack, in the editor and in the view. */
  async seen() {
    const found = await this.page.evaluate(() => {
      const plain = (one) => one.textContent.replace(/\u00a0/g, ' ');
      const texts = (selector) => [...document.querySelectorAll(selector)].map(plain);
      const labels = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.offsetParent).map((one) => one.getAttribute('aria-label') || '');
      return {
        tools: labels('.debug-toolbar .action-label'),
        actions: labels('.editor-actions .action-label'),
        language: texts('#status\\.editor\\.mode')[0] || '',
        stack: texts('.debug-call-stack .stack-frame > .label'),
        more: texts('.debug-call-stack .load-all'),
        line: texts('.view-line')[[...document.querySelectorAll('.view-overlays > div')].findIndex((one) => one.querySelector('.debug-top-stack-frame-line, .debug-focused-stack-frame-line'))],
        exception: texts('.exception-widget')[0] || '',
        values: texts('.debug-variables .monaco-list-row'),
        toasts: texts('.notification-toast .notification-list-item-message'),
        dialog: texts('.monaco-dialog-box')[0] || '',
        problems: texts('.markers-panel .monaco-list-row'),
        compared: texts('.monaco-diff-editor .modified .view-line'),
      };
    });
    return { ...found, view: await this.viewed() };
  }
  /** The frame of a page of the extension, which is a page in a page in a page, by something in it. */
  async inner(selector) {
    for (const frame of this.page.frames()) {
      try {
        if (await frame.$(selector)) return frame;
      } catch {
        continue; // a frame that is gone
      }
    }
    return undefined;
  }
  /** What the view of the loop shows. */
  async viewed() {
    const frame = await this.inner('#figure');
    return frame && frame.evaluate(() => {
      const now = document.querySelector('.followed');
      return {
        boxes: document.querySelectorAll('[data-address]').length,
        now: now ? now.dataset.address : '',
        value: document.getElementById('value').textContent,
        columns: document.querySelectorAll('[data-goto]').length,
        column: (document.querySelector('.now[data-goto]') || { dataset: {} }).dataset.goto || '',
        overview: document.getElementById('overview').innerText.slice(0, 2000),
      };
    }).catch(() => undefined);
  }
  /** Click with the mouse on what fits in the workbench, or in a page of the extension. */
  async click(selector, fits = () => true, more = {}, within = undefined) {
    let found;
    await this.until(async () => {
      const frame = within ? await this.inner(within) : this.page;
      for (const one of frame ? await frame.$$(selector) : []) {
        const words = await one.evaluate((element) => `${element.textContent}\n${element.getAttribute('aria-label')}\n${element.dataset.address}\n${element.dataset.goto}`);
        if (!found && fits(words.replace(/\u00a0/g, ' '))) found = one;
      }
      return found;
    }, `${selector} is there`);
    await found.click(more);
  }
  inView(selector, fits) {
    return this.click(selector, fits, {}, '#figure');
  }
  async explorer() {
    for (const key of ['Control', 'Shift']) await this.page.keyboard.down(key);
    await this.page.keyboard.press('KeyE');
    for (const key of ['Control', 'Shift']) await this.page.keyboard.up(key);
    await this.rest();
  }
  openFile(name) {
    return this.click('.explorer-folders-view .monaco-list-row', (words) => words.startsWith(name), { count: 2 });
  }
  async tool(name) {
    const before = await this.place();
    await this.click('.debug-toolbar .action-label', (words) => words.includes(`\n${name}`));
    await this.until(async () => (await this.place()) !== before, `${name} moves`);
    await this.rest();
  }
  async place() {
    const { stack, line } = await this.seen();
    return JSON.stringify([stack, (line || '').slice(0, 30)]);
  }
  async until(holds, what) {
    const end = Date.now() + 1000 * SECONDS;
    while (Date.now() < end) {
      if (await holds()) return;
      await new Promise((done) => setTimeout(done, 100));
    }
    await this.page.screenshot({ path: `${folder}/failed.png` });
    throw new Error(`not within ${SECONDS} seconds: ${what}`);
  }
  rest() {
    return new Promise((done) => setTimeout(done, 1200));
  }
  async told(step) {
    console.log(JSON.stringify({ step, ...(await this.seen()) }));
    await this.page.screenshot({ path: `${folder}/${step}.png` });
  }
  /** Wait until a session stands at its start. */
  async begun() {
    await this.until(async () => (await this.seen()).tools.some((one) => one.startsWith('Step Back')), 'Step Back is offered');
    await this.until(async () => (await this.seen()).stack.length > 0, 'a stack is shown');
    await this.until(async () => ((await this.viewed()) || {}).boxes > 0, 'the view has a figure');
    await this.rest();
  }
}

(async () => {
  const browser = await puppeteer.launch({ executablePath: chromium, args: flags, headless: true });
  try {
    const page = await browser.newPage();
    await page.setViewport({ width: 1500, height: 950 });
    await page.goto(`http://${address}/`, { waitUntil: 'domcontentloaded', timeout: 1000 * SECONDS });
    const workbench = new Workbench(page);
    await workbench.openFile('pom.xml');
    await workbench.until(async () => (await workbench.seen()).language === 'XML', 'XML is XML');
    await workbench.rest();
    await workbench.told('other');
    await workbench.openFile('model.xml');
    await workbench.until(async () => (await workbench.seen()).language === 'OpenVINO IR', 'the model is one');
    await workbench.told('model');
    await page.keyboard.press('F5');
    await workbench.begun();
    await workbench.told('entry');
    await workbench.tool('Continue');
    await workbench.until(async () => ((await workbench.viewed()) || {}).now, 'the view follows');
    await workbench.told('nan');
    for (let count = 0; count < 6; count += 1) await page.keyboard.press('F10'); // faster than the workbench asks
    await workbench.rest();
    await workbench.told('fast');
    await workbench.tool('Reverse');
    await workbench.tool('Step Back');
    await workbench.told('before');
    await workbench.inView('[data-address]', (words) => /exp_key$/m.test(words));
    await workbench.until(async () => (await workbench.viewed()).value, 'a click shows a value');
    await workbench.told('value');
    await workbench.inView('[data-tab="overview"]');
    await workbench.until(async () => (await workbench.viewed()).columns > 0, 'the overview is shown');
    await workbench.rest();
    await workbench.told('overview');
    await workbench.inView('[data-goto]', (words) => /@3$/m.test(words));
    await workbench.until(async () => /@3\b/.test((await workbench.seen()).stack.join(' ')), 'a click goes there');
    await workbench.rest();
    await workbench.told('goto');
    await workbench.click('.debug-toolbar .action-label', (words) => /\n(Stop|Disconnect)/.test(words));
    await workbench.until(async () => !(await workbench.seen()).tools.length, 'the session ends');
    await workbench.explorer();
    await workbench.click('.explorer-folders-view .monaco-list-row', (words) => words.startsWith('other\n'));
    await workbench.openFile('doubling.onnx');
    await workbench.until(async () => workbench.inner('nav:has(#debug) + main svg'), 'the model is drawn');
    await workbench.rest();
    await workbench.told('onnx');
    await workbench.click('#debug', undefined, {}, '#debug');
    await workbench.click('.quick-input-list .monaco-list-row', (words) => words.startsWith('Random numbers'));
    await workbench.until(async () => (await workbench.seen()).tools.some((one) => one.startsWith('Step Back')), 'a session begins');
    await workbench.told('debug');
    await workbench.click('.debug-toolbar .action-label', (words) => /\n(Stop|Disconnect)/.test(words));
    await workbench.until(async () => !(await workbench.seen()).tools.length, 'the session ends');
    await workbench.explorer();
    await workbench.click('.explorer-folders-view .monaco-list-row', (words) => words.startsWith('sick\n'));
    await workbench.openFile('quotient.xml');
    await workbench.until(async () => (await workbench.seen()).language === 'OpenVINO IR', 'the model is one');
    await workbench.click('.editor-actions .action-label', (words) => /\nCheck the model/.test(words));
    await workbench.until(async () => (await workbench.seen()).problems.length > 1, 'there are problems');
    await workbench.rest();
    await workbench.told('check');
    await workbench.click('.markers-panel .monaco-list-row', (words) => words.includes('NaN first appears'), { count: 2 });
    await workbench.rest();
    await page.keyboard.down('Control');
    await page.keyboard.press('Period');
    await page.keyboard.up('Control');
    await workbench.click('.action-widget .monaco-list-row', (words) => words.includes('Find the edit that repairs'));
    await workbench.until(async () => (await workbench.seen()).compared.length > 0, 'the repaired model is compared');
    await workbench.rest();
    await workbench.told('repair');
  } finally {
    await browser.close();
  }
})().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
