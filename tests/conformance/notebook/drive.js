// Uses a notebook as a person does, and says what it shows: node drive.js NODE_MODULES CHROMIUM ADDRESS FOLDER [dark]
// Prints a line of JSON for each thing that was done, and writes pictures into the folder.
'use strict';

const [modules, chromium, address, folder, theme = 'light'] = process.argv.slice(2);
const puppeteer = require(`${modules}/puppeteer-core`);
const SECONDS = 60;
const flags = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--force-color-profile=srgb',
];
const errors = [];

class Notebook {
  constructor(page) {
    this.page = page;
  }
  seen() {
    return this.page.evaluate(() => {
      const root = window.loop();
      const ids = [...root.querySelectorAll('[id]')].map((one) => one.id);
      const text = (selector) => (root.querySelector(selector) || { textContent: '' }).textContent;
      const now = root.querySelector('.followed');
      return {
        place: text('.place'), reasons: [...root.querySelectorAll('.reasons li')].map((one) => one.textContent),
        iteration: root.querySelector('input[type=range]').value, most: root.querySelector('input[type=range]').max,
        boxes: root.querySelectorAll('[data-address]').length, now: now ? now.dataset.address : '',
        chosen: text('.chosen b'), value: text('.chosen pre'), answer: text('.answer'),
        columns: root.querySelectorAll('[data-goto]').length, breakpoints: text('.breakpoints'),
        story: [...root.querySelectorAll('[data-panel=story] text')].map((one) => one.textContent).join(' '), theme: root.dataset.theme || '',
        twice: ids.filter((one, at) => ids.indexOf(one) !== at),
      };
    });
  }
  async until(holds, what) {
    const end = Date.now() + 1000 * SECONDS;
    while (Date.now() < end) {
      try {
        if (holds(await this.seen())) return;
      } catch {
        // not there yet
      }
      await new Promise((done) => setTimeout(done, 20));
    }
    throw new Error(`not within ${SECONDS} seconds: ${what}: ${JSON.stringify(await this.seen().catch(String))}`);
  }
  async told(step, more = {}) {
    await new Promise((done) => setTimeout(done, 400));
    console.log(JSON.stringify({ step, ...more, ...(await this.seen()) }));
    await this.page.screenshot({ path: `${folder}/${step}_${theme}.png` });
  }
  /** Click with the mouse on what fits in the first widget, or in another one. */
  async click(selector, fits = '', widget = 0) {
    const found = await this.page.evaluateHandle((wanted, text, number) => {
      const root = number ? window.loops()[number] : window.loop();
      return [...root.querySelectorAll(wanted)].find((one) => (one.dataset.goto || one.dataset.address || '').endsWith(text));
    }, selector, fits, widget);
    await found.asElement().click();
  }
  /** What each view of the widget shows, where the widget is shown more than once. */
  views() {
    return this.page.evaluate(() => window.loops().map((root) => {
      const now = root.querySelector('.followed');
      return { place: root.querySelector('.place').textContent, now: now ? now.dataset.address : '' };
    }));
  }
  /** Wait until all views are so. */
  async all(holds, what) {
    const end = Date.now() + 1000 * SECONDS;
    while (!holds(await this.views())) {
      if (Date.now() > end) throw new Error(`not within ${SECONDS} seconds: ${what}: ${JSON.stringify(await this.views())}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }
  async run(cell) {
    const at = () => this.page.evaluate(() => {
      const cells = [...document.querySelectorAll('.jp-Notebook .jp-Cell')];
      return cells.indexOf(document.activeElement.closest('.jp-Cell'));
    });
    do {  // cells move while outputs appear above them, so that a click may be beside one
      await (await this.page.$$('.jp-Notebook .jp-Cell .jp-InputArea-editor'))[cell].click();
      await new Promise((done) => setTimeout(done, 200));
    } while ((await at()) !== cell);
    await this.page.keyboard.down('Shift');
    await this.page.keyboard.press('Enter');
    await this.page.keyboard.up('Shift');
    await this.page.waitForFunction((number) => {
      const prompt = document.querySelectorAll('.jp-Notebook .jp-Cell')[number].querySelector('.jp-InputPrompt');
      return /\d/.test(prompt.textContent);
    }, { timeout: 1000 * SECONDS }, cell);
    await new Promise((done) => setTimeout(done, 500));
  }
  async command(line) {
    await this.click('input[aria-label="command"]');
    await this.page.keyboard.type(line);
    await this.page.keyboard.press('Enter');
  }
}

(async () => {
  const browser = await puppeteer.launch({ executablePath: chromium, args: flags, headless: true });
  try {
    const page = await browser.newPage();
    // marimo keeps a widget in a tree of its own, below the document's
    await page.evaluateOnNewDocument(() => {
      window.loops = () => [...document.querySelectorAll('.stepper-loop')];
      window.loop = (within = document) => {
        const found = within.querySelector('.stepper-loop');
        if (found) return found;
        const inner = [...within.querySelectorAll('*')].filter((one) => one.shadowRoot);
        return inner.map((one) => window.loop(one.shadowRoot)).find(Boolean) || null;
      };
    });
    page.on('pageerror', (error) => errors.push(String(error).slice(0, 300)));
    await page.setViewport({ width: 1200, height: 1300 });
    await page.goto(address, { waitUntil: 'domcontentloaded', timeout: 1000 * SECONDS });
    const notebook = new Notebook(page);
    if (address.includes('/lab/')) {
      await page.waitForSelector('.jp-Notebook .jp-Cell', { timeout: 1000 * SECONDS });
      await page.waitForFunction(() => window.jupyterapp || document.querySelector('.jp-Toolbar'), { timeout: 1000 * SECONDS });
      await new Promise((done) => setTimeout(done, 3000));
      for (let cell = 0; cell < 2; cell += 1) await notebook.run(cell);
    }
    await notebook.until((seen) => seen.boxes > 0, 'the widget is shown');
    await page.evaluate(() => window.loop().scrollIntoView());
    await notebook.told('start');
    await notebook.command('break nan');
    await notebook.until((seen) => seen.breakpoints.includes('when nan'), 'the breakpoint is listed');
    await notebook.click('[data-verb="continue"]');
    await notebook.until((seen) => seen.reasons.length > 0, 'it stops at the NaN');
    await notebook.told('nan');
    await notebook.click('[data-tab="story"]');
    await notebook.until((seen) => seen.story.includes('first here'), 'the story is drawn');
    await notebook.told('story');
    await notebook.click('[data-tab="body"]');
    const begin = Date.now();
    await notebook.click('input[type=range]');
    await page.keyboard.press('Home');
    await notebook.until((seen) => seen.place.includes('#0'), 'the slider goes to the start');
    for (let at = 1; at <= 5; at += 1) {
      await page.keyboard.press('ArrowRight');
      await notebook.until((seen) => seen.place.includes(`#${at}`), `the slider goes to iteration ${at}`);
    }
    await notebook.told('slider', { milliseconds: Date.now() - begin });
    await notebook.click('[data-address]', 'token_part');
    await notebook.until((seen) => seen.chosen.endsWith('token_part'), 'a click shows a value');
    await notebook.told('value');
    await notebook.click('[data-tab="overview"]');
    await notebook.click('[data-goto]', '@3');
    await notebook.until((seen) => seen.place.includes('#3'), 'a column goes there');
    await notebook.told('overview', { errors });
    if (address.includes('/lab/')) {
      await notebook.run(2);
      await notebook.all((views) => views.length === 2 && views.every((one) => one.place.endsWith('#2')), 'the widget is shown twice');
      const again = await notebook.views();
      await page.evaluate(() => window.loops()[1].scrollIntoView());
      await notebook.click('[data-tab="story"]');  // in the first view; the second one shows the figure
      await notebook.click('[data-verb="next"]', '', 1);
      await notebook.all((views) => views.every((one) => one.now && one.place === views[0].place), 'both views follow');
      console.log(JSON.stringify({ step: 'again', again, views: await notebook.views(), errors }));
      await page.screenshot({ path: `${folder}/again_${theme}.png` });
    }
  } finally {
    await browser.close();
  }
})().catch((error) => {
  console.error(String(error), errors.join('; '));
  process.exit(1);
});
