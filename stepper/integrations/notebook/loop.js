// A debugger in a notebook. It shows what it is given and says what was clicked; it works nothing out itself.

const VERBS = [
  ['first', '|◀', 'to the start'],
  ['reverse continue', '◀◀', 'back to the stop before'],
  ['reverse next', '◀', 'the operation before'],
  ['next', '▶', 'the next operation; a loop inside as one'],
  ['step', '↘', 'the next operation, into loops inside'],
  ['finish', '↗', 'to the end of this loop'],
  ['continue', '▶▶', 'on to the next stop, or to the end'],
];

/** Have JupyterLab leave the keys of these elements to them; it asks the element with the focus alone. */
function keepKeys(elements) {
  for (const one of elements) one.dataset.lmSuppressShortcuts = 'true';
}

function element(parent, tag, properties = {}, text = '') {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  keepKeys([made]);
  parent.append(made);
  return made;
}

function render({ model, el }) {
  const root = element(el, 'div', { class: 'stepper-loop' });
  const ask = (kind, text = '') => model.send({ kind, text: String(text) });

  // Figures follow the theme of the notebook, each of which tells it in its own way; else that of the system.
  const themed = () => {
    const { body } = document;
    const isLight = { true: true, false: false }[body.dataset.jpThemeLight];
    const isDark = /\b(vscode-dark|vscode-high-contrast|dark|dark-theme)\b/.test(body.className);
    if (isLight !== undefined) root.dataset.theme = isLight ? 'light' : 'dark';
    else if (isDark) root.dataset.theme = 'dark';
    else if (/\b(vscode-light|light)\b/.test(body.className)) root.dataset.theme = 'light';
  };
  themed();
  const watched = new MutationObserver(themed);
  watched.observe(document.body, { attributes: true, attributeFilter: ['class', 'data-jp-theme-light'] });

  const bar = element(root, 'div', { class: 'bar', role: 'toolbar', 'aria-label': 'steps' });
  for (const [kind, sign, what] of VERBS) {
    const button = element(bar, 'button', { type: 'button', title: what, 'aria-label': what, 'data-verb': kind }, sign);
    button.onclick = () => ask(kind);
  }
  const slider = element(bar, 'input', { type: 'range', min: '0', 'aria-label': 'iteration' });
  const number = element(bar, 'output');
  slider.oninput = () => (number.textContent = slider.value);
  slider.onchange = () => ask('iteration', slider.value);

  const place = element(root, 'div', { class: 'place', role: 'status' });
  const reasons = element(root, 'ul', { class: 'reasons' });

  const tabs = element(root, 'div', { class: 'bar', role: 'tablist' });
  const panels = {};
  for (const name of ['body', 'overview', 'story']) {
    const tab = element(tabs, 'button', { type: 'button', role: 'tab', 'data-tab': name }, name);
    panels[name] = { tab, panel: element(root, 'div', { class: 'panel', role: 'tabpanel', 'data-panel': name }) };
    tab.onclick = () => {
      open(name);
      if (name === 'story') ask('story');
    };
  }
  const open = (name) => {
    for (const [key, { tab, panel }] of Object.entries(panels)) {
      tab.setAttribute('aria-selected', String(key === name));
      panel.hidden = key !== name;
    }
  };
  open('body');

  const chosen = element(root, 'div', { class: 'chosen' });
  const prompt = element(root, 'div', { class: 'prompt' });
  const line = element(prompt, 'input', { type: 'text', placeholder: 'a command, such as: why, break nan, print h@*', 'aria-label': 'command', spellcheck: 'false' });
  const answer = element(root, 'pre', { role: 'status', class: 'answer' });
  const breakpoints = element(root, 'div', { class: 'bar breakpoints' });
  // Notebooks take keys for commands of their own, and Enter for one of a cell: a form is never submitted there.
  line.addEventListener('keydown', (event) => {
    event.stopPropagation();
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    if (line.value.trim()) ask('command', line.value);
    line.value = '';
  });

  // What is inside of a figure or of the overview comes from the debugger, which writes names as text alone.
  root.addEventListener('click', ({ target }) => {
    const column = target.closest('[data-goto]');
    const operation = target.closest('[data-address]');
    if (column && column.dataset.goto) ask('goto', column.dataset.goto);
    else if (operation) ask('choose', operation.dataset.address);
  });
  root.addEventListener('keydown', (event) => {
    const operation = event.target.closest('[data-address]');
    if (operation && (event.key === 'Enter' || event.key === ' ')) {
      event.preventDefault();
      ask('choose', operation.dataset.address);
    }
  });

  const drawn = () => {
    const figure = model.get('figure');
    panels.body.panel.innerHTML = figure.svg || '';
    if (!figure.svg) panels.body.panel.textContent = figure.title || '';
    for (const [id, address] of Object.entries(figure.addresses || {})) {
      const box = panels.body.panel.querySelector(`[id="${CSS.escape(id)}"]`);
      if (!box) continue;
      box.dataset.address = address;
      box.setAttribute('tabindex', '0');
      box.setAttribute('role', 'button');
      keepKeys([box]);
    }
    mark();
  };
  const overviewed = () => {
    panels.overview.panel.innerHTML = model.get('overview');
    keepKeys(panels.overview.panel.querySelectorAll('[data-goto]'));
    mark();
  };
  const mark = () => {
    const shown = model.get('shown');
    for (const old of root.querySelectorAll('.followed')) old.classList.remove('followed');
    const box = shown.box && panels.body.panel.querySelector(`[id="${CSS.escape(shown.box)}"]`);
    if (box) {
      box.classList.add('followed');
      const panel = panels.body.panel;
      const at = box.getBoundingClientRect().top - panel.getBoundingClientRect().top;
      if (at < 0 || at > panel.clientHeight - 40) panel.scrollTop += at - panel.clientHeight / 2;
    }
    for (const column of panels.overview.panel.querySelectorAll('[data-goto]')) {
      column.classList.toggle('now', Boolean(shown.column) && column.dataset.goto === shown.column);
    }
  };
  const told = () => {
    const shown = model.get('shown');
    place.textContent = shown.place;
    reasons.replaceChildren();
    for (const one of shown.reasons || []) element(reasons, 'li', {}, one);
    const inside = shown.iteration >= 0;
    slider.disabled = !inside;
    slider.max = String(Math.max((shown.iterations || 1) - 1, shown.iteration, 0));
    slider.value = String(Math.max(shown.iteration, 0));
    number.textContent = inside ? `${shown.iteration} of ${shown.iterations || '?'}` : 'outside of loops';
    chosen.replaceChildren();
    if (shown.chosen && shown.chosen.address) {
      element(chosen, 'b', {}, shown.chosen.address);
      const picture = element(chosen, 'div');
      picture.innerHTML = shown.chosen.picture;
      element(chosen, 'span', {}, shown.chosen.scale);
      element(root.querySelector('.chosen'), 'pre', { style: 'grid-column: 1 / -1' }, shown.chosen.text);
    }
    panels.story.panel.innerHTML = shown.story || '';
    answer.textContent = shown.answer || '';
    answer.classList.toggle('failed', Boolean(shown.failed));
    breakpoints.replaceChildren();
    for (const one of shown.breakpoints || []) {
      const button = element(breakpoints, 'button', { type: 'button', title: 'delete this breakpoint' }, `${one.number}: ${one.text} ✕`);
      button.onclick = () => ask('delete', one.number);
    }
    mark();
  };
  const worked = () => root.setAttribute('aria-busy', String(model.get('busy')));

  const heard = [['change:figure', drawn], ['change:overview', overviewed], ['change:shown', told], ['change:busy', worked]];
  for (const [event, show] of heard) model.on(event, show);
  drawn();
  overviewed();
  told();
  return () => {
    watched.disconnect();
    heard.forEach(([event, show]) => model.off(event, show));
  };
}

export default { render };
