// The elements on a phone's screen, as a list beside its picture.

import { waits } from './asks.js';
import { action, foreign, h, replace } from './dom.js';
import { failed } from './gestures.js';
import { call, post } from './gateway.js';

// The elements are read once the picture rests, or after so long while it moves.
const REST = 400;
const LONGEST = 2000;
// A caret that blinks or a film that runs changes the picture and no element: after so many times that all was as before,
// they are read more and more seldom.
const SAME = 3;
const SELDOM = 15000;
// A press this soon after the list moved may be meant for what was there before.
const SETTLE = 400;
const MOST = 300;

function flat(node, clickable, list) {
  const takes = clickable || node.clickable || node.editable;
  if (node.bounds) list.push({ ...node, takes });
  for (const child of node.children ?? []) flat(child, takes, list);
  return list;
}

/** Elements with a name, from the answer of `get_accessibility_tree`. */
function named(answer) {
  const { nodes } = answer.structuredContent ?? JSON.parse(answer.content[0].text);
  const all = nodes.flatMap((node) => flat(node, false, []));
  // What only has an id is listed where somebody may press it.
  const idOf = (node) => (node.clickable || node.editable ? node.resourceId : '');
  return all.filter((node) => node.visible).map(({ id, bounds, className, takes, ...node }) => ({
    id, takes, name: node.text || node.contentDescription || idOf(node) || '', kind: String(className ?? '').split('.').pop(),
    at: { x: bounds.left, y: bounds.top, width: bounds.right - bounds.left, height: bounds.bottom - bounds.top },
  })).filter((one) => one.name && one.at.width > 0 && one.at.height > 0).slice(0, MOST);
}

const isSame = (one, two) => one.id === two.id && one.name === two.name && one.kind === two.kind;

/** The list; `act` makes a gesture, `mark` shows a place on the picture. */
export function phoneElements(id, act, mark) {
  const list = h('ul', { class: 'elements', 'aria-label': 'Elements of the screen' });
  const note = h('div', {});
  let due;
  let since = null;
  let isReading = false;
  // Until it is known whether somebody must agree, nobody is asked.
  let isAsked = true;
  let same = 0;
  let last = -SELDOM;
  let moved = -SETTLE;
  let shown = '';
  new MutationObserver(() => { moved = performance.now(); }).observe(list, { childList: true });

  async function read() {
    const waiting = isAsked ? waits() : '';
    note.append(waiting);
    try {
      return named(await call(id, 'get_accessibility_tree', {}));
    } finally {
      if (waiting) waiting.remove();
    }
  }

  function draw(all) {
    const text = JSON.stringify(all);
    list.removeAttribute('aria-busy');
    same = text === shown ? same + 1 : 0;
    if (same) return;
    // What just changed may go on changing, and no other picture has to come of it.
    changed();
    shown = text;
    mark(null);
    replace(list, all.map(row));
  }

  const row = (one) => {
    const show = () => mark(one.at);
    const hide = () => mark(null);
    const button = h('button', { type: 'button', name: one.name, onpointerenter: show, onfocus: show, onpointerleave: hide, onblur: hide, onclick: (event) => press(one, event.detail > 0) },
      foreign(one.name), ' ', h('span', { class: 'quiet' }, one.kind));
    return h('li', { 'data-key': `${one.id} ${one.name}`, 'data-at': JSON.stringify(one.at) }, button);
  };

  /** Presses an element if it is still there: the list may be older than the screen. */
  async function press(one, isPointer) {
    try {
      if (isPointer && performance.now() - moved < SETTLE) throw new Error('The list just moved. Look again, and press again.');
      const now = await read();
      const found = now.filter((other) => isSame(other, one));
      draw(now);
      if (found.length !== 1) throw new Error(`“${one.name}” is not on the screen any more, so nothing was pressed.`);
      const { at, takes, name } = found[0];
      // The phone looks for the element once more, where it can be clicked at all.
      if (takes) await act('click_element', { element_id: one.id }, `Press ${name}`, `Tapped ${name}`);
      else await act('tap', { x: Math.round(at.x + at.width / 2), y: Math.round(at.y + at.height / 2) }, `Tap ${name}`, `Tapped ${name}`);
    } catch (error) {
      failed(error);
    }
  }

  async function refresh() {
    if (isReading || isAsked) return;
    isReading = true;
    since = null;
    last = performance.now();
    try {
      draw(await read());
      note.replaceChildren();
    } catch (error) {
      note.replaceChildren(h('p', { class: 'problem' }, error.message));
    }
    isReading = false;
    if (since !== null) changed();
  }

  function changed() {
    const now = performance.now();
    since ??= now;
    const pause = same < SAME ? 0 : Math.min(LONGEST * 2 ** (same - SAME), SELDOM);
    clearTimeout(due);
    due = setTimeout(refresh, Math.max(last + pause, Math.min(now + REST, since + LONGEST)) - now);
  }

  /** Reads the elements only when somebody wants it, where each time somebody must agree. */
  async function begin() {
    const { verdict, reason } = await post('policy/explain', { device: id, tool: 'get_accessibility_tree', arguments: {} });
    isAsked = verdict === 'ask';
    if (isAsked) {
      note.replaceChildren(h('p', { class: 'note' }, `The policy asks a person each time the elements are read (${reason}).`), ...action('Read them', async () => draw(await read())));
    } else await refresh();
  }

  return {
    note, list, begin: () => begin().catch(failed),
    /** The picture is another one. */
    changed,
    /** Somebody did something: what is listed may be gone. */
    touched() {
      list.setAttribute('aria-busy', 'true');
      same = 0;
      changed();
    },
  };
}
