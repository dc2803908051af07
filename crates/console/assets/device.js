import { action, ago, carefully, copier, facts, foreign, h, isAdmin, outcome, page, parameters, say, show, state, table, toolName, visible } from './dom.js';
import { argumentsForm } from './form.js';
import { call, get, post } from './gateway.js';
import { live, whenOver } from './live.js';
import { strip } from './picture.js';
import { result, tree } from './result.js';

const id = parameters().get('id') ?? '';
const path = `devices/${encodeURIComponent(id)}`;
const summary = h('section', { class: 'card' });
const changes = h('section', { class: 'card waiting', hidden: true });
const tools = h('section', { class: 'card' }, h('h2', {}, 'Tools'));
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
  /** Asks you where the policy would ask a person. */
  const isAllowed = async (args) => {
    const said = await post('policy/explain', { device: id, tool: name, arguments: args });
    if (said.verdict !== 'ask') return true;
    const asks = `The policy asks a person before this call (${said.reason}).`;
    answer.replaceChildren(h('div', { class: 'note' }, said.may_confirm
      ? [h('p', {}, asks), action('Confirm and call', () => make({ confirmed: true }), { class: 'danger' })]
      : [h('p', {}, asks, ' You signed in with a token, so somebody else decides: the call waits under ', h('a', { href: 'approvals' }, 'Approvals'), '.'), action('Call and wait', () => make({}), { class: 'primary' })]));
    return false;
  };
  const make = async (more) => {
    const args = form.read();
    if (!more && !await isAllowed(args)) return;
    const started = performance.now();
    answer.replaceChildren(h('p', { class: 'quiet' }, 'Calling'));
    try {
      const made = await call(id, name, args, more);
      answer.replaceChildren(h('p', { class: 'done' }, `Answered in ${Math.round(performance.now() - started)} ms`), result(made));
      say('The call succeeded');
    } catch (error) {
      answer.replaceChildren(h('p', { class: 'problem', role: 'alert' }, error.message),
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

let known = '';
live(['tools', 'devices'], async () => {
  const answer = await get('tools', { device: id });
  const text = JSON.stringify(answer);
  // A form that somebody fills in stays as long as the tools are the same.
  if (text === known) return;
  known = text;
  const list = h('ul', { class: 'tools' }, answer.tools.map(toolRow));
  const search = h('input', { type: 'search', oninput() {
    const word = search.value.toLowerCase();
    for (const one of list.children) one.hidden = !one.dataset.name.includes(word);
  } });
  tools.replaceChildren(h('div', { class: 'row apart' }, h('h2', {}, `${answer.tools.length} tools`), answer.tools.length > 8 ? h('label', {}, 'Find a tool', search) : ''),
    answer.tools.length ? list : h('p', { class: 'quiet' }, 'It offers no tools now.'));
  if (answer.tools.length === 1) list.querySelector('button').click();
});

function manage(device) {
  const name = h('input', { value: device.name ?? '', placeholder: device.id });
  const labels = h('input', { value: device.labels.join(' '), placeholder: 'kitchen door' });
  const saveLabels = () => {
    const wanted = labels.value.split(/[\s,]+/).filter(Boolean);
    return post(`${path}/labels`, { add: wanted, remove: device.labels.filter((one) => !wanted.includes(one)) });
  };
  return h('details', { 'data-part': 'manage' }, h('summary', {}, 'Rename, label, pin or forget'), h('div', { class: 'form' },
    h('div', { class: 'bar' }, h('label', {}, 'Name', name), action('Rename', () => post(`${path}/rename`, { name: name.value.trim() }))),
    h('div', { class: 'bar' }, h('label', {}, 'Labels', labels), action('Save labels', saveLabels)),
    h('div', { class: 'row' },
      device.pinned ? action('Unpin its tools', () => post(`${path}/unpin`)) : action('Pin its tools', () => post(`${path}/pin`, {})),
      carefully('Forget', 'Press again to forget it', async () => { await post(`${path}/forget`); location.assign('devices'); }))));
}

/** Who has the device to themselves, and the way to end that. */
function held(lease) {
  return [foreign(lease.holder), lease.purpose ? [', for ', foreign(lease.purpose)] : '', ', until ', new Date(lease.until).toLocaleTimeString('en-GB'),
    lease.waiting ? `, ${lease.waiting} waiting` : '', ' ',
    isAdmin() ? carefully('Break the lease', 'Press again: the holder loses the device', async () => { await post(`${path}/break-lease`); refreshSummary(); }) : ''];
}

let leaseEnds;
const refreshSummary = live(['devices', 'tools', 'leases'], async () => {
  const { devices } = await get('devices', { id });
  const device = devices.find((one) => one.id === id || one.name === id);
  if (!device) {
    summary.replaceChildren(h('p', { class: 'problem' }, `No device is called ${id}.`), h('a', { href: 'devices' }, 'All devices'));
    return;
  }
  leaseEnds = whenOver(device.lease, refreshSummary, leaseEnds);
  document.getElementById('title').replaceChildren(foreign(visible(device.name ?? device.id)));
  const shown = Object.entries(device.attributes).slice(0, 20).map(([key, value]) => [key, foreign(typeof value === 'object' ? JSON.stringify(value) : String(value))]);
  const open = [...summary.querySelectorAll('details[open]')].map((one) => one.dataset.part);
  // Nothing moves under somebody who types or is about to confirm.
  if ((open.length && summary.contains(document.activeElement)) || summary.querySelector('[data-asked]')) return;
  summary.replaceChildren(
    h('div', { class: 'row apart' }, state(device.state), device.family === 'phone' ? h('a', { class: 'button', href: page('phone', { id }) }, 'Show its screen') : ''),
    device.remedy ? h('p', { class: 'note' }, device.remedy) : '',
    (device.warnings ?? []).map((warning) => h('p', { class: 'note' }, foreign(warning))),
    facts([['Id', h('code', {}, device.id)], ['Kind', foreign(device.kind)], ['Version', foreign(device.version)], ['Family', device.family],
      ['Connected', device.admitted_by], ['Key', h('code', {}, foreign(device.key))], ['Since', ago(device.since)],
      ['Labels', device.labels.length ? device.labels.map((label) => h('span', { class: 'tag' }, label)) : null],
      ['Tools', `${device.tools}${device.pinned ? ', pinned' : ''}${device.quarantined ? `, ${device.quarantined} held back` : ''}`],
      ['Held by', device.lease ? held(device.lease) : null]], 'wide'),
    shown.length ? h('details', { 'data-part': 'attributes' }, h('summary', {}, 'More about it'), facts(shown)) : '',
    device.instructions ? h('details', { 'data-part': 'instructions' }, h('summary', {}, 'How to use it, as the device says'), h('pre', { tabindex: '0' }, device.instructions)) : '',
    isAdmin() ? manage(device) : '');
  summary.querySelectorAll('details').forEach((one) => { one.open = open.includes(one.dataset.part); });
  await showChanges(device);
});

async function showChanges(device) {
  changes.hidden = !device.quarantined;
  if (!device.quarantined) return;
  const held = await get(`${path}/changes`);
  const lines = held.quarantined.map((tool) => h('div', {}, h('h3', {}, h('code', {}, foreign(tool.tool))), h('p', { class: 'quiet' }, tool.why),
    tool.changes.length ? h('ul', {}, tool.changes.map((one) => h('li', {}, h('strong', {}, one.impact), ' ', foreign(one.message)))) : ''));
  changes.replaceChildren(h('h2', {}, 'Held back'), h('p', {}, 'These tools differ from what was agreed. They are not offered until you accept them.'), lines,
    held.gone.length ? h('p', {}, 'Gone: ', held.gone.map((one) => [h('code', {}, one), ' '])) : '',
    isAdmin() && held.digest ? h('div', { class: 'row' }, action('Accept all of it', () => post(`${path}/accept`, { digest: held.digest }))) : '');
}

/** When it was there in the last day, from its own events. */
function reach(list) {
  const turns = list.filter((one) => one.topic === 'sinew/connected' || one.topic === 'sinew/disconnected');
  if (!turns.length) return '';
  const now = Date.now();
  const start = Math.max(now - 86400000, turns[0].at);
  const parts = [];
  turns.forEach((one, place) => {
    const from = Math.max(one.at, start);
    const to = turns[place + 1]?.at ?? now;
    if (to > from) parts.push({ size: to - from, kind: one.topic === 'sinew/connected' ? 'good' : 'away' });
  });
  const there = parts.filter((part) => part.kind === 'good').reduce((sum, part) => sum + part.size, 0);
  const share = Math.round((there / Math.max(1, now - start)) * 100);
  return h('div', {}, h('p', { class: 'hint' }, `Reachable ${share} % of the time since ${new Date(start).toLocaleString('en-GB')}`), strip(`Reachable ${share} % of the time`, parts));
}

live(['events', 'devices'], async () => {
  const answer = await get('events', { device: id, limit: 1000 });
  const newest = answer.events.slice(-50).reverse();
  const open = new Set([...events.querySelectorAll('li[data-open]')].map((one) => one.dataset.seq));
  events.replaceChildren(h('h2', {}, 'Events'), reach(answer.events), newest.length
    ? h('ul', { class: 'events', tabindex: '0', 'aria-label': 'Events' }, newest.map((one) => h('li', { 'data-seq': one.seq, 'data-open': open.has(String(one.seq)) }, h('div', { class: 'row apart' }, h('code', {}, foreign(one.topic)), h('span', { class: 'quiet' }, ago(one.at))),
      Object.keys(one.body ?? {}).length ? h('div', { class: 'mono quiet' }, foreign(JSON.stringify(one.body).slice(0, 400))) : '')))
    : h('p', { class: 'quiet' }, 'It has sent no events.'));
});

live(['calls'], async () => {
  const { records } = await get('audit', { device: id, kind: 'call', limit: 10 });
  recent.replaceChildren(h('div', { class: 'row apart' }, h('h2', {}, 'Newest calls'), h('a', { href: page('calls', { device: id }) }, 'All')),
    records.length ? table('Newest calls', ['When', 'Tool', 'Caller', 'Outcome'], records.map((one) => [h('a', { href: page('call', { id: one.id }) }, ago(one.at)), toolName(one.tool ?? one.name), foreign(one.principal), outcome(one.outcome)])) : h('p', { class: 'quiet' }, 'Nobody has called it.'));
});

show(summary, changes, tools, h('div', { class: 'columns' }, recent, events));
