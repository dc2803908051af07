import { action, ago, foreign, h, isAdmin, keyed, page, replace, say, show, state, table } from './dom.js';
import { get, post } from './gateway.js';
import { live } from './live.js';

const list = h('div', {});
const recorder = h('section', { class: 'card' });

live(['devices', 'tools'], async () => {
  const [{ devices }, status] = await Promise.all([get('devices', { family: 'routine' }), get('status')]);
  const cards = await Promise.all(devices.map(async (device) => {
    const { tools } = await get('tools', { device: device.id });
    const problems = Array.isArray(device.attributes.problems) ? device.attributes.problems : [];
    return h('section', { class: 'card', 'data-key': device.id },
      h('div', { class: 'row apart' }, h('h2', {}, foreign(device.name ?? device.id)), state(device.state)),
      problems.map((text) => h('p', { class: 'problem' }, foreign(typeof text === 'string' ? text : JSON.stringify(text)))),
      h('ul', { class: 'tools' }, tools.map((tool) => h('li', {}, h('p', {}, h('code', {}, foreign(tool.own_name ?? tool.name)), ' ', h('span', { class: 'quiet' }, foreign(tool.description)))))),
      h('div', { class: 'row' }, h('a', { class: 'button', href: page('device', { id: device.id }) }, 'Run'), h('a', { class: 'button', href: page('calls', { device: device.id }) }, 'Its runs')));
  }));
  replace(list, status.routines ? h('p', { class: 'quiet' }, 'Read from ', h('code', {}, status.routines), ' on the machine of the gateway.') : '',
    cards.length ? cards : h('p', { class: 'card' }, 'There are no routines. Record one here, or put a file into that folder.'));
});

// The gateway keeps the answers of calls only while somebody records, and ends that by itself when nobody asks again.
const KEPT_SECONDS = 60;
const NAME = `console-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
let first = null;
let renewing;
let calls = [];
const left = new Set();
const rows = h('div', { 'aria-live': 'polite' });
const draft = h('div', {});
const routine = h('input', { placeholder: 'good_night', pattern: '[a-z][a-z0-9_]*', autocomplete: 'off' });

const keep = () => post('journal', { seconds: KEPT_SECONDS, name: NAME });

async function start() {
  const { last } = await keep();
  first = last;
  calls = [];
  left.clear();
  draft.replaceChildren();
  renewing = setInterval(() => keep().catch(() => {}), (KEPT_SECONDS * 1000) / 2);
  drawRecorder();
  say('Recording');
}

async function stop() {
  clearInterval(renewing);
  await post('journal', { seconds: 0, name: NAME });
  renewing = null;
  drawRecorder();
}

async function readCalls() {
  if (first === null) return;
  const { calls: made } = await get('journal', { after: first, limit: 200 });
  calls = made.filter((one) => !one.nested).sort((one, two) => one.id - two.id);
  drawCalls();
}

function drawCalls() {
  replace(rows, calls.length ? table('Recorded calls', ['Use', 'When', 'Caller', 'Device', 'Tool', 'Arguments'], calls.map((one) => keyed(one.id, [
    h('input', { type: 'checkbox', 'aria-label': `Use call ${one.id}`, checked: !left.has(one.id) && !one.error, disabled: Boolean(one.error), onchange: (event) => (event.target.checked ? left.delete(one.id) : left.add(one.id)) }),
    ago(one.at), foreign(one.principal), foreign(one.device), h('code', {}, foreign(one.tool)), one.error ? h('span', { class: 'state bad' }, 'failed') : h('span', { class: 'mono quiet' }, foreign(JSON.stringify(one.arguments).slice(0, 200)))])))
    : h('p', { class: 'quiet' }, renewing ? 'Now use the devices: here, with a client, or with sinew call. Each call appears here.' : ''));
}

async function make() {
  const chosen = calls.filter((one) => !one.error && !left.has(one.id)).map((one) => one.id);
  const made = await post('routines/draft', { name: routine.value.trim(), calls: chosen });
  const text = h('textarea', { rows: 20, spellcheck: 'false', class: 'mono', value: made.file });
  draft.replaceChildren(h('p', {}, `${made.steps} steps of ${made.calls} calls. Read it, and change what was guessed, before you save it.`), h('label', {}, 'The routine', text),
    h('div', { class: 'row' }, action('Save', async () => {
      const saved = await post('routines', { name: made.name, file: text.value });
      draft.replaceChildren(h('p', { class: 'done' }, 'Saved as ', h('code', {}, saved.path), '. It is a tool within a second.'));
      say('Saved');
      if (renewing) await stop();
    }, { class: 'primary' })));
}

function drawRecorder() {
  const isOn = Boolean(renewing);
  replace(recorder, h('h2', {}, 'Make a routine of calls'), h('p', { class: 'quiet' }, 'Record what you or a client does with the devices, and it becomes one tool with parameters.'),
    h('div', { class: 'row' }, isOn ? action('Stop recording', stop) : action('Record', start, { class: 'primary' }), isOn ? h('span', { class: 'state warn' }, 'recording') : ''),
    rows, first === null ? '' : h('form', { class: 'bar', onsubmit: (event) => event.preventDefault() }, h('label', {}, 'Name of the routine', routine), action('Make a routine', make)), draft);
  drawCalls();
}

addEventListener('pagehide', () => clearInterval(renewing));
show(isAdmin() ? recorder : '', list);
if (isAdmin()) {
  drawRecorder();
  live(['calls'], readCalls);
}
