import { question, stillWaits, waits } from './asks.js';
import { difference } from './difference.js';
import { action, ago, carefully, copier, facts, foreign, h, isAdmin, keyed, many, outcome, page, parameters, replace, say, show, state, table, toolName, visible } from './dom.js';
import { argumentsForm } from './form.js';
import { call, deviceOf, get, post } from './gateway.js';
import { live, whenOver } from './live.js';
import { numbers, strip } from './picture.js';
import { result, tree } from './result.js';

const id = parameters().get('id') ?? '';
const path = `devices/${encodeURIComponent(id)}`;
const summary = h('section', { class: 'card' });
const changes = h('section', { class: 'card waiting', hidden: true });
const events = h('section', { class: 'card' });
const recent = h('section', { class: 'card' });

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function asCommand(tool, args) {
  const pairs = Object.entries(args).map(([key, value]) => ` ${shell(`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)}`);
  return `sinew call ${shell(id)} ${shell(tool)}${pairs.join('')}`;
}

function asCurl(tool, args) {
  const gateway = new URL('..', document.baseURI).href.replace(/\/$/, '');
  const body = JSON.stringify({ device: id, tool, arguments: args });
  return `curl -s ${shell(`${gateway}/api/v1/call`)} -H "Authorization: Bearer $SINEW_TOKEN" -H 'Content-Type: application/json' -d ${shell(body)}`;
}

function toolBody(tool) {
  const form = argumentsForm(tool.inputSchema);
  const answer = h('div', { 'aria-live': 'polite' });
  const name = tool.own_name ?? tool.name;
  let asks = null;
  // What is asked is about the arguments that were there.
  form.node.addEventListener('input', () => asks?.remove());
  /** `decided` is what was decided about the policy's question, once it was asked. */
  const make = async (decided, args = form.read()) => {
    const again = (now) => make(now, args);
    asks = decided ? null : await question(id, name, args, again);
    if (asks) {
      answer.replaceChildren(asks);
      return;
    }
    const started = performance.now();
    answer.replaceChildren(decided && !decided.confirmed ? waits() : h('p', { class: 'quiet' }, 'Calling'));
    try {
      const made = await call(id, name, args, decided);
      answer.replaceChildren(h('p', { class: 'done' }, `Answered in ${Math.round(performance.now() - started)} ms`), result(made));
      say('The call succeeded');
    } catch (error) {
      answer.replaceChildren(stillWaits(error, again) ?? h('p', { class: 'problem', role: 'alert' }, error.message),
        error.details?.error_details ? h('div', { class: 'tree' }, tree(error.details.error_details)) : '');
    }
  };
  const hints = tool.annotations ?? {};
  const press = hints.destructiveHint ? carefully('Call', 'This may destroy something. Press again to call', () => make()) : action('Call', () => make(), { class: 'primary' });
  return h('div', { class: 'tool-body form' },
    h('p', {}, foreign(tool.description)),
    isAdmin() ? form.node : h('p', { class: 'quiet' }, 'Your role does not call tools.'),
    isAdmin() ? h('div', { class: 'row' }, press, copier('Copy as sinew call', () => asCommand(name, form.read())), copier('Copy as curl', () => asCurl(name, form.read()))) : '',
    answer,
    h('details', {}, h('summary', {}, 'What models see'), h('pre', { tabindex: '0' }, JSON.stringify(tool, null, 2))));
}

function toolRow(tool) {
  const name = tool.own_name ?? tool.name;
  const body = h('div', { hidden: true });
  const head = h('button', { type: 'button', class: 'tool-head', 'aria-expanded': 'false', onclick() {
    if (!body.childElementCount) body.append(toolBody(tool));
    body.hidden = !body.hidden;
    head.setAttribute('aria-expanded', String(!body.hidden));
  } }, h('code', {}, foreign(name)), h('span', { class: 'quiet' }, foreign(tool.description)));
  return h('li', { 'data-name': `${name} ${tool.description}`.toLowerCase() }, head, body);
}

const list = h('ul', { class: 'tools' });
const count = h('h2', {}, 'Tools');
const search = h('input', { type: 'search', oninput: () => filter() });
const find = h('label', { hidden: true }, 'Find a tool', search);
const none = h('p', { class: 'quiet', hidden: true }, 'It offers no tools now.');
const tools = h('section', { class: 'card' }, h('div', { class: 'row apart' }, count, find), list, none);
const filter = () => {
  const word = search.value.toLowerCase();
  for (const one of list.children) one.hidden = !one.dataset.name.includes(word);
};

// A form that somebody fills in stays as long as its tool is the same.
let rows = new Map();
live(['tools', 'devices'], async () => {
  const answer = await get('tools', { device: id });
  const isFirst = count.textContent === 'Tools';
  rows = new Map(answer.tools.map((tool) => [JSON.stringify(tool), tool]).map(([text, tool]) => [text, rows.get(text) ?? toolRow(tool)]));
  replace(list, [...rows.values()]);
  count.textContent = many(rows.size, 'tool');
  find.hidden = rows.size <= 8;
  none.hidden = rows.size > 0;
  filter();
  if (isFirst && rows.size === 1) [...rows.values()][0].querySelector('button').click();
});

function manage(device) {
  const name = h('input', { name: 'name', value: device.name ?? '', placeholder: device.id });
  const labels = h('input', { name: 'labels', value: device.labels.join(' '), placeholder: 'kitchen door' });
  const saveLabels = () => {
    const wanted = labels.value.split(/[\s,]+/).filter(Boolean);
    return post(`${path}/labels`, { add: wanted, remove: device.labels.filter((one) => !wanted.includes(one)) });
  };
  return h('details', {}, h('summary', {}, 'Rename, label, pin or forget'), h('div', { class: 'form' },
    h('div', { class: 'bar' }, h('label', {}, 'Name', name), action('Rename', () => post(`${path}/rename`, { name: name.value.trim() }))),
    h('div', { class: 'bar' }, h('label', {}, 'Labels', labels), action('Save labels', saveLabels)),
    h('div', { class: 'row' },
      device.pinned ? action('Unpin its tools', () => post(`${path}/unpin`)) : action('Pin its tools', () => post(`${path}/pin`, {})),
      carefully('Forget', 'Press again to forget it', async () => { await post(`${path}/forget`); location.assign('devices'); }))));
}

/** Who has the device to themselves, and the way to end that. */
function held(lease) {
  return h('span', { 'data-key': lease.holder }, foreign(lease.holder), lease.purpose ? [', for ', foreign(lease.purpose)] : '', ', until ', new Date(lease.until).toLocaleTimeString('en-GB'),
    lease.waiting ? `, ${lease.waiting} waiting` : '', ' ',
    isAdmin() ? carefully('Break the lease', 'Press again: the holder loses the device', async () => { await post(`${path}/break-lease`); refreshSummary(); }) : '');
}

let leaseEnds;
const refreshSummary = live(['devices', 'tools', 'leases'], async () => {
  const device = await deviceOf(id);
  if (!device) {
    replace(summary, h('p', { class: 'problem' }, `No device is called ${id}.`), h('a', { href: 'devices' }, 'All devices'));
    return;
  }
  leaseEnds = whenOver(device.lease, refreshSummary, leaseEnds);
  document.getElementById('title').replaceChildren(foreign(visible(device.name ?? device.id)));
  const shown = Object.entries(device.attributes).slice(0, 20).map(([key, value]) => [key, foreign(typeof value === 'object' ? JSON.stringify(value) : String(value))]);
  replace(summary,
    h('div', { class: 'row apart' }, state(device.state), device.family === 'phone' ? h('a', { class: 'button', href: page('phone', { id }) }, 'Show its screen') : ''),
    device.remedy ? h('p', { class: 'note' }, device.remedy) : '',
    (device.warnings ?? []).map((warning) => h('p', { class: 'note' }, foreign(warning))),
    facts([['Id', h('code', {}, device.id)], ['Kind', foreign(device.kind)], ['Version', foreign(device.version)], ['Family', device.family],
      ['Connected', device.admitted_by], ['Key', h('code', {}, foreign(device.key))], ['Since', ago(device.since)],
      ['Labels', device.labels.length ? device.labels.map((label) => h('span', { class: 'tag' }, label)) : null],
      ['Tools', `${device.tools}${device.pinned ? ', pinned' : ''}${device.quarantined ? `, ${device.quarantined} held back` : ''}`],
      ['Held by', device.lease ? held(device.lease) : null]], 'wide'),
    shown.length ? h('details', {}, h('summary', {}, 'More about it'), facts(shown)) : '',
    device.instructions ? h('details', {}, h('summary', {}, 'How to use it, as the device says'), h('pre', { tabindex: '0' }, device.instructions)) : '',
    isAdmin() ? manage(device) : '');
});

/** How a tool, or the text of the device itself, differs from what was agreed. */
function heldBack(title, why, list, form) {
  return h('div', {}, h('h3', {}, title), why ? h('p', { class: 'quiet' }, why) : '',
    list.length ? h('ul', {}, list.map((one) => h('li', {}, h('strong', {}, one.impact), ' ', foreign(one.message)))) : '',
    h('p', { class: 'hint' }, form.agreed === undefined ? 'All of it is new:' : 'Line by line, - is what was agreed and + is what would be accepted:'), difference(form.agreed, form.now));
}

let shownDigest = null;
/** What is held back. It is accepted under the digest of what is shown, and the gateway refuses the digest of anything else. */
async function showChanges() {
  const held = await get(`${path}/changes`);
  const digest = held.digest ?? null;
  // What somebody reads stays, and a button that asks asks about what it stands below.
  if (digest === shownDigest) return;
  const isOther = digest && shownDigest;
  shownDigest = digest;
  changes.hidden = !digest;
  const accept = async () => {
    try {
      await post(`${path}/accept`, { digest });
    } catch (error) {
      await showChanges();
      if (shownDigest === digest) throw error;
    }
  };
  replace(changes, digest ? [h('h2', {}, 'Held back'),
    isOther ? h('p', { class: 'note', role: 'alert' }, 'This changed since you saw it, and nothing of it is accepted. Read it again.') : '',
    h('p', {}, 'This differs from what was agreed. It is not offered until you accept it.'),
    held.text_form ? heldBack('Its own name and instructions', '', held.text ?? [], held.text_form) : '',
    held.quarantined.map((tool) => heldBack(h('code', {}, foreign(tool.tool)), tool.why, tool.changes, tool.form)),
    held.gone.length ? h('p', {}, 'Gone: ', held.gone.map((one) => [h('code', {}, foreign(one)), ' '])) : '',
    isAdmin() ? h('div', { class: 'row', 'data-key': digest }, carefully('Accept all of it', 'Press again to accept exactly this', accept, { class: 'primary' })) : ''] : '');
}
live(['tools', 'devices'], showChanges);

const DAY = 86400000;
/** When it was there in the last day: from its own events, and from what is known about it now. */
function reach(device, list) {
  const turns = list.filter((one) => one.topic === 'sinew/connected' || one.topic === 'sinew/disconnected').map((one) => ({ at: one.at, isHere: one.topic === 'sinew/connected' }));
  // Other events may have taken the place of these.
  if (!turns.length) turns.push({ at: device.since, isHere: device.state !== 'away' });
  const now = Date.now();
  const start = Math.max(now - DAY, turns[0].at);
  const parts = turns.map(({ at, isHere }, place) => ({ from: Math.max(at, start), to: turns[place + 1]?.at ?? now, isHere }))
    .filter(({ from, to }) => to > from).map((part) => ({ ...part, size: part.to - part.from, kind: part.isHere ? 'good' : 'away' }));
  const share = Math.round((parts.filter((part) => part.isHere).reduce((sum, part) => sum + part.size, 0) / Math.max(1, now - start)) * 100);
  const time = (at) => new Date(at).toLocaleString('en-GB');
  return h('div', { class: 'reach' }, h('p', { class: 'hint' }, `Connected ${share} % of the time since ${time(start)}`), strip(`Connected ${share} % of the time`, parts),
    h('div', { class: 'row apart hint' }, h('span', {}, time(start)), h('span', {}, 'now')),
    numbers('When it connected and left', ['From', 'To', 'State'], parts.toReversed().slice(0, 50).map((part) => [time(part.from), part.to === now ? 'now' : time(part.to), part.isHere ? 'connected' : 'away'])));
}

live(['events', 'devices'], async () => {
  const [answer, device] = await Promise.all([get('events', { device: id, limit: 1000 }), deviceOf(id)]);
  const newest = answer.events.slice(-50).reverse();
  replace(events, h('h2', {}, 'Events'), device ? reach(device, answer.events) : '', newest.length
    ? h('ul', { class: 'events', tabindex: '0', 'aria-label': 'Events' }, newest.map((one) => h('li', {}, h('div', { class: 'row apart' }, h('code', {}, foreign(one.topic)), h('span', { class: 'quiet' }, ago(one.at))),
      Object.keys(one.body ?? {}).length ? h('div', { class: 'mono quiet' }, foreign(JSON.stringify(one.body).slice(0, 400))) : '')))
    : h('p', { class: 'quiet' }, 'It has sent no events.'));
});

live(['calls'], async () => {
  const { records } = await get('audit', { device: id, kind: 'call', limit: 10 });
  replace(recent, h('div', { class: 'row apart' }, h('h2', {}, 'Newest calls'), h('a', { href: page('calls', { device: id }) }, 'All')),
    records.length ? table('Newest calls', ['When', 'Tool', 'Caller', 'Outcome'], records.map((one) => keyed(one.id, [h('a', { href: page('call', { id: one.id }) }, ago(one.at)), toolName(one.tool ?? one.name), foreign(one.principal), outcome(one.outcome)]))) : h('p', { class: 'quiet' }, 'Nobody has called it.'));
});

show(summary, changes, tools, h('div', { class: 'columns' }, recent, events));
