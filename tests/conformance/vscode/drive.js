// Uses the workbench as a person does, and says what it shows: node drive.js NODE_MODULES CHROMIUM ADDRESS FOLDER
// Prints a line of JSON for each thing that was done, and writes pictures into the folder.
'use strict';

const [modules, chromium, address, folder] = process.argv.slice(2);
const puppeteer = require(`${modules}/puppeteer-core`);
const SECONDS = 60;

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
      return {
        tools: [...document.querySelectorAll('.debug-toolbar .action-label')].map((one) => one.getAttribute('aria-label')),
        stack: texts('.debug-call-stack .stack-frame > .label'),
        line: texts('.view-line')[[...document.querySelectorAll('.view-overlays > div')].findIndex((one) => one.querySelector('.debug-top-stack-frame-line, .debug-focused-stack-frame-line'))],
        exception: texts('.exception-widget')[0] || '',
        values: texts('.debug-variables .monaco-list-row'),
      };
    });
    return { ...found, view: await this.viewed() };
  }
  /** What the view of the loop shows; it is a page in a page in a page. */
  async viewed() {
    for (const frame of this.page.frames()) {
      try {
        const found = await frame.evaluate(() => {
          const figure = document.getElementById('figure');
          if (!figure) return undefined;
          const now = document.querySelector('.followed');
          return {
            boxes: document.querySelectorAll('[data-address]').length,
            now: now ? now.dataset.address : '',
            value: document.getElementById('value').textContent,
            columns: document.querySelectorAll('[data-goto]').length,
            column: (document.querySelector('.now[data-goto]') || { dataset: {} }).dataset.goto || '',
            overview: document.getElementById('overview').innerText.slice(0, 2000),
          };
        });
        if (found) return found;
      } catch {
        continue; // a frame that is gone
      }
    }
    return undefined;
  }
  async inView(work, argument) {
    for (const frame of this.page.frames()) {
      try {
        if (await frame.$('#figure')) return await frame.evaluate(work, argument);
      } catch {
        continue;
      }
    }
    throw new Error('the view is not there');
  }
  async tool(name) {
    const before = await this.place();
    await this.page.evaluate((wanted) => {
      const tools = [...document.querySelectorAll('.debug-toolbar .action-label')];
      tools.find((one) => one.getAttribute('aria-label').startsWith(wanted)).click();
    }, name);
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
    throw new Error(`not within ${SECONDS} seconds: ${what}`);
  }
  rest() {
    return new Promise((done) => setTimeout(done, 1200));
  }
  async told(step) {
    console.log(JSON.stringify({ step, ...(await this.seen()) }));
    await this.page.screenshot({ path: `${folder}/${step}.png` });
  }
}

(async () => {
  const browser = await puppeteer.launch({ executablePath: chromium, args: flags, headless: true });
  try {
    const page = await browser.newPage();
    await page.setViewport({ width: 1500, height: 950 });
    await page.goto(`http://${address}/`, { waitUntil: 'domcontentloaded', timeout: 1000 * SECONDS });
    const workbench = new Workbench(page);
    await page.waitForSelector('.debug-toolbar', { timeout: 1000 * SECONDS });
    await workbench.until(async () => (await workbench.seen()).tools.some((one) => one.startsWith('Step Back')), 'Step Back is offered');
    await workbench.until(async () => (await workbench.seen()).stack.length > 0, 'a stack is shown');
    await workbench.until(async () => ((await workbench.viewed()) || {}).boxes > 0, 'the view has a figure');
    await workbench.rest();
    await workbench.told('entry');
    await workbench.tool('Continue');
    await workbench.until(async () => ((await workbench.viewed()) || {}).now, 'the view follows');
    await workbench.told('nan');
    await workbench.tool('Step Back');
    await workbench.told('before');
    await workbench.inView(() => [...document.querySelectorAll('[data-address]')].find((one) => /exp_key$/.test(one.dataset.address)).dispatchEvent(new MouseEvent('click', { bubbles: true })));
    await workbench.until(async () => (await workbench.viewed()).value, 'a click shows a value');
    await workbench.told('value');
    await workbench.inView(() => document.querySelector('[data-tab="overview"]').click());
    await workbench.until(async () => (await workbench.viewed()).columns > 0, 'the overview is shown');
    await workbench.rest();
    await workbench.told('overview');
    await workbench.inView(() => [...document.querySelectorAll('[data-goto]')].find((one) => /@3$/.test(one.dataset.goto)).click());
    await workbench.until(async () => /@3\b/.test((await workbench.seen()).stack.join(' ')), 'a click goes there');
    await workbench.rest();
    await workbench.told('goto');
  } finally {
    await browser.close();
  }
})().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
