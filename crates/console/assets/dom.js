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
    else if (name === 'value') {
      // So that it can be told whether somebody has typed since.
      if ('defaultValue' in node) node.defaultValue = value;
      node.value = value;
    }
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

/** What somebody uses, opens, scrolls or has the focus on. */
const USED = 'a, button, input, textarea, details, summary, [tabindex]';

/** What an element is, in words that stay when it is made again: the keys around it, and what it is called there. */
function identity(node, within) {
  const keys = [];
  for (let up = node; up && up !== within; up = up.parentElement) if (up.dataset.key) keys.push(up.dataset.key);
  const text = node.tagName === 'DETAILS' ? node.firstElementChild : node;
  return JSON.stringify([keys, node.tagName, node.id || node.name || node.getAttribute('href') || node.getAttribute('aria-label') || text.textContent]);
}

/** The used elements by what they are; those that cannot be told apart are left out. */
function used(within) {
  const found = new Map();
  for (const node of within.querySelectorAll(USED)) {
    const key = identity(node, within);
    found.set(key, found.has(key) ? null : node);
  }
  return found;
}

/** What took the place of an element. */
const successors = new WeakMap();

function latest(node) {
  let now = node;
  while (successors.has(now)) now = successors.get(now);
  return now;
}

const problemOf = (button) => (button.nextElementSibling?.matches('.problem') ? button.nextElementSibling : null);

/** Passes on what somebody did to an element: typed, opened, pressed. */
function passOn(was, now) {
  successors.set(was, now);
  if (was.tagName === 'DETAILS') now.open = was.open;
  if ('defaultValue' in was && was.type !== 'checkbox' && was.value !== was.defaultValue) now.value = was.value;
  if (was.tagName !== 'BUTTON') return;
  if (was.ariaDisabled) now.ariaDisabled = was.ariaDisabled;
  if (was.dataset.asked) {
    now.dataset.asked = was.dataset.asked;
    now.textContent = was.textContent;
  }
  if (problemOf(was)?.hidden === false && problemOf(now)) problemOf(now).replaceWith(problemOf(was));
}

/** Where the window's contents would move, what is read stays where it is: the focused element, or the first visible row. */
function anchorOf(target, focused) {
  if (focused) return focused;
  return scrollY ? [...target.querySelectorAll('[data-key]')].find((one) => one.getBoundingClientRect().bottom > 0) : null;
}

/** Gives an element the focus of something inside it that is gone. */
export function takeFocus(target) {
  if (!target.hasAttribute('tabindex')) target.tabIndex = -1;
  target.focus({ preventScroll: true });
}

// What is pressed stays until it is let go: a press that ends on another element than it began on would be lost.
let isPressed = false;
const held = new Map();
addEventListener('pointerdown', (event) => { isPressed = event.button === 0; }, true);
for (const end of ['pointerup', 'pointercancel']) {
  addEventListener(end, () => {
    isPressed = false;
    // The click comes first.
    setTimeout(() => {
      const due = [...held];
      held.clear();
      for (const [target, nodes] of due) replace(target, nodes);
    });
  }, true);
}

/**
 * Shows other nodes in an element. Focus, caret, scrolling, open parts, typed words and questions that buttons ask stay
 * with what they belong to: what acts on one thing of several is inside an element whose `data-key` names that thing.
 * Where the focused element is gone, the whole has the focus, and no other button.
 */
export function replace(target, ...children) {
  const nodes = children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false && one !== '');
  held.delete(target);
  if (nodes.length === target.childNodes.length && nodes.every((node, place) => node === target.childNodes[place] || node.isEqualNode(target.childNodes[place]))) return;
  if (isPressed && target.childNodes.length) {
    held.set(target, nodes);
    return;
  }
  const focused = target !== document.activeElement && target.contains(document.activeElement) ? document.activeElement : null;
  const caret = focused && focused.selectionStart !== undefined ? [focused.selectionStart, focused.selectionEnd] : null;
  const before = used(target);
  const scrolls = new Map([...before].filter(([, node]) => node?.scrollTop || node?.scrollLeft).map(([key, node]) => [key, [node.scrollLeft, node.scrollTop]]));
  const focusKey = focused && identity(focused, target);
  const anchor = anchorOf(target, focused);
  const [anchorKey, anchorTop] = anchor ? [identity(anchor, target), anchor.getBoundingClientRect().top] : [];
  target.replaceChildren(...nodes);
  const after = used(target);
  for (const [key, now] of after) {
    const was = before.get(key);
    if (was && now && was !== now) passOn(was, now);
    if (now && scrolls.has(key)) now.scrollTo(...scrolls.get(key));
  }
  const now = focused && before.get(focusKey) ? after.get(focusKey) : null;
  if (now) {
    now.focus({ preventScroll: true });
    if (caret && caret[0] !== null) now.setSelectionRange(...caret);
  } else if (focused) {
    takeFocus(target);
  }
  const row = anchor && (now ?? [...target.querySelectorAll('[data-key]')].find((one) => identity(one, target) === anchorKey));
  if (row) scrollBy(0, row.getBoundingClientRect().top - anchorTop);
}

export function show(...nodes) {
  replace(content(), ...nodes);
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

/** A row that is about one thing, for `table`: what its buttons act on. */
export const keyed = (key, cells) => Object.assign(cells, { key: String(key) });

/** A table whose cells know their column, for narrow screens. */
export function table(caption, columns, rows) {
  const cells = (row) => row.map((cell, place) => h('td', { 'data-label': columns[place] }, h('span', {}, cell)));
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    h('table', { class: 'stack' },
      h('caption', { class: 'visually-hidden' }, caption),
      h('thead', {}, h('tr', {}, columns.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, rows.map((row) => h('tr', { 'data-key': row.key }, cells(row))))));
}

export function facts(pairs, kind = '') {
  return h('dl', { class: `facts ${kind}` }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

/** A button that does something that may fail; the failure is shown beside it. */
export function action(label, run, attributes) {
  const own = h('p', { class: 'problem', role: 'alert', hidden: true });
  const problem = () => problemOf(latest(button)) ?? own;
  const button = h('button', { type: 'button', name: label, ...attributes, async onclick() {
    // A button that is `disabled` would lose the focus.
    if (button.ariaDisabled) return;
    button.ariaDisabled = 'true';
    problem().hidden = true;
    try {
      await run(button);
    } catch (error) {
      problem().textContent = visible(error.message);
      problem().hidden = false;
    } finally {
      latest(button).ariaDisabled = null;
      button.ariaDisabled = null;
    }
  } }, label);
  return [button, own];
}

/** A button for what cannot be undone: it asks on the first press. */
export function carefully(label, question, run, attributes) {
  let timer;
  const calm = (button) => {
    delete button.dataset.asked;
    button.textContent = label;
  };
  return action(label, async (button) => {
    if (button.dataset.asked) {
      clearTimeout(timer);
      calm(button);
      return run(button);
    }
    button.dataset.asked = 'yes';
    button.textContent = question;
    timer = setTimeout(() => calm(latest(button)), 5000);
  }, { class: 'danger', ...attributes });
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
