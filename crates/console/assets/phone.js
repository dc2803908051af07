// A phone: its screen, what can be done on it, and who has it.

import { waits } from './asks.js';
import { action, carefully, foreign, h, isAdmin, many, ownName, page, parameters, replace, show } from './dom.js';
import { phoneElements } from './elements.js';
import { failed, gestures, notice, problem, typeOn } from './gestures.js';
import { deviceOf, get, post } from './gateway.js';
import { live, whenOver } from './live.js';
import { phoneScreen, pointOn } from './screen.js';

const id = parameters().get('id') ?? '';
const path = `devices/${encodeURIComponent(id)}`;

const looking = h('div', {});
const screen = phoneScreen(id, () => {
  looking.replaceChildren();
  elements.changed();
});
const act = gestures(id, () => {
  elements.touched();
  screen.refresh().catch(failed);
});
const elements = phoneElements(id, act, screen.mark);
const watching = h('button', { type: 'button', 'aria-pressed': 'true', onclick() {
  const isLive = watching.getAttribute('aria-pressed') !== 'true';
  watching.setAttribute('aria-pressed', String(isLive));
  screen.setLive(isLive);
} }, 'Live');

const words = h('input', { autocomplete: 'off' });
const KEYS = [['Back', 'press_back'], ['Home', 'press_home'], ['Recents', 'press_recents'], ['Enter', 'press_key', 'ENTER'], ['Delete', 'press_key', 'DEL'], ['Wake up', 'press_key', 'WAKEUP']];
const keys = KEYS.map(([label, tool, key]) => action(label, () => act(tool, key ? { key } : {}, `Press ${label}`, `Pressed ${label}`)));
let offered;
/** Writes at the caret, or where the phone does not offer that, behind what the field holds. */
async function write(text) {
  offered ??= get('tools', { device: id }).then(({ tools }) => new Set(tools.map((tool) => tool.own_name ?? tool.name)));
  const names = await offered.catch((error) => {
    offered = undefined;
    throw error;
  });
  const [tool, args] = names.has('insert_text') ? ['insert_text', { text }] : ['input_text', { text, append: true }];
  await act(tool, args, `Type ${many([...text].length, 'character')}`, 'Typed');
}
const type = () => {
  const text = words.value;
  words.value = '';
  write(text).catch(failed);
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
  const lease = (await deviceOf(id))?.lease;
  leaseEnds = whenOver(lease, showHolder, leaseEnds);
  const isMine = lease?.holder === ownName();
  const release = action('Release', async () => { await post(`${path}/release`); await showHolder(); });
  const takeOver = carefully('Take over', 'Press again: the holder loses the phone', async () => { await post(`${path}/break-lease`); await reserve(); });
  const until = lease ? new Date(lease.until).toLocaleTimeString('en-GB') : '';
  replace(holder, lease
    ? h('div', { class: 'row', 'data-key': lease.holder }, h('span', {}, isMine ? 'You have it' : ['Held by ', foreign(lease.holder)], lease.purpose && !isMine ? [' for ', foreign(lease.purpose)] : '', ` until ${until}`, lease.waiting ? `, ${lease.waiting} waiting` : ''), isMine ? release : takeOver)
    : h('div', { class: 'row' }, h('span', { class: 'quiet' }, 'Nobody has it to themselves.'), action('Reserve for ten minutes', reserve)));
}

/** The first picture may wait for somebody. */
async function begin() {
  const said = await post('policy/explain', { device: id, tool: 'capture_screenshot', arguments: {} });
  if (said.verdict === 'ask') looking.replaceChildren(h('p', { class: 'note' }, `The policy asks a person before somebody looks at the screen (${said.reason}).`), waits());
  screen.look();
  await elements.begin();
}

document.getElementById('title').replaceChildren(foreign(id));
if (!isAdmin()) show(h('p', { class: 'note' }, 'Looking at a screen is a call of a tool, which your role does not make.'));
else {
  show(h('div', { class: 'row' }, h('a', { class: 'button', href: page('device', { id }) }, 'All its tools'), watching, h('span', { class: 'quiet' }, 'The audit has one record for this view, one for each gesture, and one each time the elements are read.')), holder, looking, screen.problem,
    h('div', { class: 'phone' }, h('div', { class: 'form' }, screen.node, h('p', { class: 'hint', id: 'screen-help' }, 'Tap, hold and swipe on the picture. While it has the focus, keys and pasted text go to the phone; Tab leads on.'), h('div', { class: 'row' }, keys),
      h('form', { class: 'bar', onsubmit: (event) => { event.preventDefault(); type(); } }, h('label', {}, 'Text for the focused field', words), h('button', { type: 'submit' }, 'Type'))),
    h('div', {}, problem, notice, h('section', { class: 'card' }, h('h2', {}, 'On the screen'), h('p', { class: 'hint' }, 'Point at an element to see where it is; press it to tap it. It is looked for again before.'), elements.note, elements.list))));
  pointOn(screen, act);
  typeOn(screen.picture, act, write);
  live(['devices', 'leases'], showHolder);
  begin().catch(failed);
}
