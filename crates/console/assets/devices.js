import { ago, foreign, h, isAdmin, keyed, many, page, parameters, replace, show, state, table } from './dom.js';
import { get, items } from './gateway.js';
import { live } from './live.js';

const PAGE = 100;
const wanted = { search: '', state: '', family: '', ...Object.fromEntries(parameters()) };
let pages = 1;

const list = h('div', {});
const count = h('p', { class: 'quiet', role: 'status' });
const more = h('button', { type: 'button', hidden: true, onclick() { pages += 1; refresh(); } }, 'Show more');

function choose(name, label, options) {
  return h('label', {}, label, h('select', { name, onchange: change }, options.map(([value, text]) => h('option', { value, selected: wanted[name] === value }, text))));
}

let typing;
const search = h('input', { type: 'search', name: 'search', value: wanted.search, placeholder: 'Name, kind or label', oninput() { clearTimeout(typing); typing = setTimeout(change, 150); } });
const filters = h('form', { class: 'bar', role: 'search', onsubmit: (event) => { event.preventDefault(); change(); } },
  h('label', {}, 'Search', search),
  choose('state', 'State', [['', 'Any'], ['ready', 'ready'], ['away', 'away'], ['other', 'other']]),
  choose('family', 'Family', [['', 'Any'], ...(wanted.family ? [[wanted.family, wanted.family]] : [])]));

/** The families that there are, besides the one that is chosen. */
async function offerFamilies() {
  const { families } = await get('overview');
  const select = filters.elements.family;
  select.append(...Object.keys(families).filter((one) => one !== wanted.family).map((one) => h('option', { value: one }, one)));
}

function change() {
  for (const name of ['search', 'state', 'family']) wanted[name] = filters.elements[name].value.trim();
  pages = 1;
  history.replaceState(null, '', page('devices', wanted));
  refresh();
}

function row(device) {
  const name = device.name ?? device.id;
  const notes = [device.lease ? `held by ${device.lease.holder}` : '', device.quarantined ? `${device.quarantined} held back` : '', device.warnings?.length ? `${device.warnings.length} warnings` : ''].filter(Boolean);
  return keyed(device.id, [
    [h('a', { href: page('device', { id: device.id }) }, foreign(name)), device.name ? [' ', h('span', { class: 'quiet mono' }, device.id)] : ''],
    [state(device.state), notes.length ? h('div', { class: 'hint' }, notes.join(', ')) : ''],
    device.family, foreign(device.kind), foreign(device.version),
    device.labels.map((label) => h('span', { class: 'tag' }, label)),
    String(device.tools), ago(device.since)]);
}

async function refresh() {
  const { found: devices, total } = await items('devices', 'devices', wanted, PAGE * pages);
  count.textContent = total === devices.length ? many(total, 'device') : `${devices.length} of ${total} devices`;
  more.hidden = devices.length >= total;
  replace(list, devices.length
    ? table('Devices', ['Device', 'State', 'Family', 'Kind', 'Version', 'Labels', 'Tools', 'Since'], devices.map(row))
    : h('p', { class: 'quiet' }, 'No device fits. Boards, phones and servers appear here when they connect.'));
}

show(filters, h('section', { class: 'card' }, count, list, more),
  isAdmin() && h('p', {}, h('a', { href: 'waiting' }, 'Connect a board or a server')));
offerFamilies();
live(['devices', 'tools', 'leases'], refresh);
