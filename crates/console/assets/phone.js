// A phone's screen: pictures one after another, and one call for each gesture.

import { action, carefully, foreign, h, isAdmin, ownName, page, parameters, say, show, svg, visible } from './dom.js';
import { call, get, post } from './gateway.js';
import { live, whenOver } from './live.js';

const id = parameters().get('id') ?? '';
const path = `devices/${encodeURIComponent(id)}`;
// Between two pictures; the gateway answers when the screen has changed.
const PAUSE = 100;
const picture = h('img', { alt: 'The screen of the phone', draggable: 'false', tabindex: '0', hidden: true, onload() { picture.hidden = false; } });
const overlay = svg('svg', { 'aria-hidden': 'true', preserveAspectRatio: 'none' });
const screen = h('div', { class: 'screen' }, picture, overlay);
const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
const elements = h('ul', { class: 'elements', 'aria-label': 'Elements of the screen' });
const watching = h('button', { type: 'button', 'aria-pressed': 'true', onclick() {
  isLive = !isLive;
  watching.setAttribute('aria-pressed', String(isLive));
  if (isLive) look();
} }, 'Live');

let isLive = true;
let isLooking = false;
let wantsTree = true;
let seen = '';
let size = { width: 0, height: 0 };

const failed = (error) => {
  problem.textContent = visible(error.message);
  problem.hidden = false;
};

/** The next picture that differs from the last; the gateway waits some seconds for one. The whole view is one record. */
async function take(known) {
  const query = new URLSearchParams({ max_side: '900', quality: '60', ...(known ? { known } : {}) });
  const response = await fetch(`api/v1/phones/${encodeURIComponent(id)}/screen?${query}`);
  if (response.status === 304) return;
  if (response.status === 401) return location.assign('login');
  if (!response.ok) {
    const answer = await response.json().catch(() => ({}));
    throw new Error(answer.message ?? answer.error?.error_message ?? `the gateway answered ${response.status}`);
  }
  seen = (response.headers.get('etag') ?? '').replaceAll('"', '');
  const before = picture.src;
  picture.src = URL.createObjectURL(await response.blob());
  if (before.startsWith('blob:')) URL.revokeObjectURL(before);
  problem.hidden = true;
}

/** Pictures until somebody stops or looks elsewhere. */
async function look() {
  if (isLooking) return;
  isLooking = true;
  while (isLive && !document.hidden) {
    try {
      await take(seen);
      if (wantsTree) await readTree();
      await new Promise((done) => setTimeout(done, PAUSE));
    } catch (error) {
      failed(error);
      await new Promise((done) => setTimeout(done, 3000));
    }
  }
  isLooking = false;
}

async function readSize() {
  const info = await call(id, 'get_screen_info', {});
  const value = info.structuredContent ?? JSON.parse(info.content[0].text);
  size = { width: value.width, height: value.height };
  overlay.setAttribute('viewBox', `0 0 ${size.width} ${size.height}`);
}

function flat(node, list = []) {
  if (node && typeof node === 'object') {
    if (node.bounds) list.push(node);
    for (const child of [...(node.children ?? []), ...(node.nodes ?? []), ...(Array.isArray(node) ? node : [])]) flat(child, list);
  }
  return list;
}

function edges(bounds) {
  const { left, top, right, bottom, x, y, width, height } = bounds;
  return left !== undefined ? { x: left, y: top, width: right - left, height: bottom - top } : { x, y, width, height };
}

let shownTree = '';
async function readTree() {
  wantsTree = false;
  const answer = await call(id, 'get_accessibility_tree', {});
  const value = answer.structuredContent ?? JSON.parse(answer.content[0].text);
  const text = JSON.stringify(value);
  if (text === shownTree || elements.contains(document.activeElement)) return;
  shownTree = text;
  const named = flat(value).map((node) => ({ node, name: node.text || node.contentDescription || node.content_desc || node.label || node.resourceId || '' })).filter((one) => one.name && edges(one.node.bounds).width > 0);
  elements.replaceChildren(...named.slice(0, 300).map(({ node, name }) => {
    const at = edges(node.bounds);
    const mark = () => overlay.replaceChildren(svg('rect', at));
    const kind = String(node.className ?? node.kind ?? '').split('.').pop();
    return h('li', {}, h('button', { type: 'button', onpointerenter: mark, onfocus: mark, onpointerleave: () => overlay.replaceChildren(), onblur: () => overlay.replaceChildren(),
      onclick: () => act('tap', { x: at.x + at.width / 2, y: at.y + at.height / 2 }, `Tapped ${name}`), disabled: !isAdmin() }, foreign(name), ' ', h('span', { class: 'quiet' }, kind)));
  }));
}

/** One gesture is one call, which is checked and recorded like any other. */
async function act(tool, args, words) {
  try {
    await call(id, tool, args);
    say(words);
    wantsTree = true;
    if (!isLive) {
      await take();
      await readTree();
    }
  } catch (error) {
    failed(error);
  }
}

function place(event) {
  const box = picture.getBoundingClientRect();
  return { x: Math.round(((event.clientX - box.left) / box.width) * size.width), y: Math.round(((event.clientY - box.top) / box.height) * size.height) };
}

let down = null;
picture.addEventListener('pointerdown', (event) => {
  if (!isAdmin() || !size.width || event.button !== 0) return;
  event.preventDefault();
  picture.setPointerCapture(event.pointerId);
  down = { at: place(event), time: performance.now() };
});
picture.addEventListener('pointercancel', () => { down = null; });
picture.addEventListener('pointerup', (event) => {
  if (!down) return;
  const { at, time } = down;
  down = null;
  const end = place(event);
  const held = Math.round(performance.now() - time);
  if (Math.hypot(end.x - at.x, end.y - at.y) > size.width / 30) act('swipe', { x1: at.x, y1: at.y, x2: end.x, y2: end.y, duration: Math.min(Math.max(held, 100), 3000) }, 'Swiped');
  else if (held > 600) act('long_press', at, 'Pressed and held');
  else act('tap', at, 'Tapped');
});

const words = h('input', { autocomplete: 'off' });
const KEYS = [['Back', 'press_back'], ['Home', 'press_home'], ['Recents', 'press_recents'], ['Enter', 'press_key', 'ENTER'], ['Delete', 'press_key', 'DEL'], ['Wake up', 'press_key', 'WAKEUP']];
const keys = KEYS.map(([label, tool, key]) => action(label, () => act(tool, key ? { key } : {}, `Pressed ${label}`)));
const type = async () => {
  await act('insert_text', { text: words.value }, 'Typed');
  words.value = '';
};

// A person works with a phone for minutes; who closes the page without releasing it blocks others for this long at most.
const TAKE_SECONDS = 600;
const holder = h('div', { class: 'row', 'aria-live': 'polite' });
const reserve = async () => {
  await post(`${path}/reserve`, { seconds: TAKE_SECONDS, purpose: 'the console' });
  await showHolder();
};

let leaseEnds;
/** Who has the phone to themselves, and the way to have it oneself. */
async function showHolder() {
  if (holder.querySelector('[data-asked]')) return;
  const { devices } = await get('devices', { id });
  const lease = devices.find((one) => one.id === id || one.name === id)?.lease;
  leaseEnds = whenOver(lease, showHolder, leaseEnds);
  const isMine = lease?.holder === ownName();
  const release = action('Release', async () => { await post(`${path}/release`); await showHolder(); });
  const takeOver = carefully('Take over', 'Press again: the holder loses the phone', async () => { await post(`${path}/break-lease`); await reserve(); });
  const until = lease ? new Date(lease.until).toLocaleTimeString('en-GB') : '';
  holder.replaceChildren(...(lease
    ? [h('span', {}, isMine ? 'You have it' : ['Held by ', foreign(lease.holder)], lease.purpose && !isMine ? [' for ', foreign(lease.purpose)] : '', ` until ${until}`, lease.waiting ? `, ${lease.waiting} waiting` : ''), isMine ? release : takeOver]
    : [h('span', { class: 'quiet' }, 'Nobody has it to themselves.'), action('Reserve for ten minutes', reserve)]).flat());
}

document.getElementById('title').replaceChildren(foreign(id));
document.addEventListener('visibilitychange', () => { if (!document.hidden && isLive) look(); });
if (!isAdmin()) show(h('p', { class: 'note' }, 'Looking at a screen is a call of a tool, which your role does not make.'));
else {
  show(h('div', { class: 'row' }, h('a', { class: 'button', href: page('device', { id }) }, 'All its tools'), watching, h('span', { class: 'quiet' }, 'The audit has one record for this view, and one for each gesture.')), holder, problem,
    h('div', { class: 'phone' }, h('div', { class: 'form' }, screen, h('div', { class: 'row' }, keys),
      h('form', { class: 'bar', onsubmit: (event) => { event.preventDefault(); type(); } }, h('label', {}, 'Text for the focused field', words), h('button', { type: 'submit' }, 'Type'))),
    h('section', { class: 'card' }, h('h2', {}, 'On the screen'), h('p', { class: 'hint' }, 'Point at an element to see where it is; press it to tap its middle.'), elements)));
  live(['devices', 'leases'], showHolder);
  readSize().then(look).catch(failed);
}
