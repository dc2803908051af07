// A phone's screen: pictures one after another, and one call for each gesture.

import { action, foreign, h, isAdmin, page, parameters, say, show, svg, visible } from './dom.js';
import { call } from './gateway.js';
import './live.js';
import { pictureAddress } from './result.js';

const id = parameters().get('id') ?? '';
const PAUSE = 700;
const picture = h('img', { alt: 'The screen of the phone', draggable: 'false', tabindex: '0' });
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
let size = { width: 0, height: 0 };

const failed = (error) => {
  problem.textContent = visible(error.message);
  problem.hidden = false;
};

async function take() {
  const shot = await call(id, 'capture_screenshot', { max_side: 900, quality: 60 });
  const image = shot.content.find((one) => one.type === 'image');
  const address = image && pictureAddress(image.data);
  if (!address) throw new Error('the phone sent no picture');
  const before = picture.src;
  picture.src = address;
  if (before.startsWith('blob:')) URL.revokeObjectURL(before);
  problem.hidden = true;
}

/** Pictures until somebody stops or looks elsewhere. */
async function look() {
  if (isLooking) return;
  isLooking = true;
  while (isLive && !document.hidden) {
    try {
      await take();
      if (wantsTree) await readTree();
    } catch (error) {
      failed(error);
    }
    await new Promise((done) => setTimeout(done, PAUSE));
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
    await take();
    if (!isLive) await readTree();
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

document.getElementById('title').replaceChildren(foreign(id));
document.addEventListener('visibilitychange', () => { if (!document.hidden && isLive) look(); });
if (!isAdmin()) show(h('p', { class: 'note' }, 'Looking at a screen is a call of a tool, which your role does not make.'));
else {
  show(h('div', { class: 'row' }, h('a', { class: 'button', href: page('device', { id }) }, 'All its tools'), watching, h('span', { class: 'quiet' }, 'Each picture and each gesture is a call in the audit.')), problem,
    h('div', { class: 'phone' }, h('div', { class: 'form' }, screen, h('div', { class: 'row' }, keys),
      h('form', { class: 'bar', onsubmit: (event) => { event.preventDefault(); type(); } }, h('label', {}, 'Text for the focused field', words), h('button', { type: 'submit' }, 'Type'))),
    h('section', { class: 'card' }, h('h2', {}, 'On the screen'), h('p', { class: 'hint' }, 'Point at an element to see where it is; press it to tap its middle.'), elements)));
  readSize().then(look).catch(failed);
}
