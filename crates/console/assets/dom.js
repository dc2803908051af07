// Builds nodes. Text of devices can only become text nodes, and every character of it can be seen.

// Controls, marks of direction and characters without width. Line breaks and tabs stay.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/** A text with marks in place of hidden characters. */
export function visible(text) {
  return String(text).replace(HIDDEN, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'value') node.value = value;
    else if (name === 'href' && /^\s*[a-z][a-z0-9+.-]*:/i.test(value)) throw new Error('only addresses of the console');
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return node;
}

/** An element with attributes, listeners (`onclick`) and children. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/** Text that somebody else wrote, whose direction changes nothing around it. */
export const foreign = (text) => h('bdi', {}, text ?? '');

/** The name of a tool, which breaks between its parts. */
export const toolName = (text) => h('code', {}, h('bdi', {}, String(text ?? '').split(/(?<=[._/-])/).flatMap((part, place) => (place ? [h('wbr'), part] : [part]))));

export const content = () => document.getElementById('content');
export const isAdmin = () => document.getElementById('main').dataset.role === 'admin';
export const mayDecide = () => document.getElementById('main').dataset.role !== 'viewer';
export const ownName = () => document.getElementById('main').dataset.name;
export const parameters = () => new URLSearchParams(location.search);

export function show(...nodes) {
  content().replaceChildren(...nodes.flat(Infinity).filter(Boolean));
}

/** An address of a page of the console. */
export function page(name, values) {
  const query = new URLSearchParams(Object.entries(values ?? {}).filter(([, value]) => value !== '' && value !== null && value !== undefined));
  return query.size ? `${name}?${query}` : name;
}

/** Says something to screen readers, in one sentence. */
export function say(text) {
  document.getElementById('status').textContent = visible(text);
}

const UNITS = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];

export function ago(at) {
  const when = new Date(at);
  const seconds = Math.round((Date.now() - at) / 1000);
  const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS[3];
  return h('time', { datetime: when.toISOString(), title: when.toLocaleString('en-GB') }, seconds < 3 && seconds > -3 ? 'now' : words.format(-Math.round(seconds / size), unit));
}

/** `1 call`, `2 calls`. */
export const many = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;

export function duration(us) {
  if (us < 1000) return `${us} µs`;
  if (us < 1e6) return `${(us / 1000).toFixed(us < 1e4 ? 1 : 0)} ms`;
  return `${(us / 1e6).toFixed(1)} s`;
}

export function state(word) {
  const kind = { ready: 'good', ok: 'good', away: 'away' }[word] ?? 'warn';
  return h('span', { class: `state ${kind}` }, word);
}

/** How a call ended; one that waits for somebody did not fail. */
export function outcome(word) {
  const kind = { ok: 'good', ApprovalNeeded: 'warn', InputRequired: 'warn' }[word] ?? 'bad';
  return h('span', { class: `state ${kind}` }, word);
}

/** A table whose cells know their column, for narrow screens. */
export function table(caption, columns, rows) {
  const cells = (row) => row.map((cell, place) => h('td', { 'data-label': columns[place] }, h('span', {}, cell)));
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    h('table', { class: 'stack' },
      h('caption', { class: 'visually-hidden' }, caption),
      h('thead', {}, h('tr', {}, columns.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, rows.map((row) => h('tr', {}, cells(row))))));
}

export function facts(pairs, kind = '') {
  return h('dl', { class: `facts ${kind}` }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

/** A button that does something that may fail; the failure is shown beside it. */
export function action(label, run, attributes) {
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const button = h('button', { type: 'button', ...attributes, async onclick() {
    button.disabled = true;
    problem.hidden = true;
    try {
      await run(button);
    } catch (error) {
      problem.textContent = visible(error.message);
      problem.hidden = false;
    } finally {
      button.disabled = false;
    }
  } }, label);
  return [button, problem];
}

/** A button for what cannot be undone: it asks on the first press. */
export function carefully(label, question, run) {
  let timer;
  return action(label, async (button) => {
    if (button.dataset.asked) {
      clearTimeout(timer);
      delete button.dataset.asked;
      button.textContent = label;
      return run(button);
    }
    button.dataset.asked = 'yes';
    button.textContent = question;
    timer = setTimeout(() => { delete button.dataset.asked; button.textContent = label; }, 5000);
  }, { class: 'danger' });
}

export function copier(label, text) {
  return action(label, async (button) => {
    const value = text();
    if (navigator.clipboard) await navigator.clipboard.writeText(value);
    else throw new Error(value);
    button.textContent = 'Copied';
    say('Copied');
    setTimeout(() => { button.textContent = label; }, 1500);
  }, { class: 'plain' });
}
