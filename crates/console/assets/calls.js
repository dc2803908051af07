import { ago, duration, foreign, h, keyed, outcome, page, parameters, replace, show, table, toolName } from './dom.js';
import { get } from './gateway.js';
import { live } from './live.js';

const PAGE = 100;
const NAMES = ['device', 'principal', 'outcome', 'kind', 'run', 'before'];
const wanted = Object.fromEntries(NAMES.map((name) => [name, parameters().get(name) ?? '']));
if (!parameters().has('kind')) wanted.kind = 'call';

const list = h('div', {});
const older = h('a', { class: 'button', hidden: true }, 'Older');
const newest = h('a', { class: 'button', hidden: !wanted.before, href: page('calls', { ...wanted, before: '' }) }, 'Newest');

const text = (name, label, hint) => h('label', {}, label, h('input', { name, value: wanted[name], placeholder: hint, onchange: change }));
const choose = (name, label, options) => h('label', {}, label, h('select', { name, onchange: change }, options.map(([value, words]) => h('option', { value, selected: wanted[name] === value }, words))));
const outcomes = [['', 'Any'], ['ok', 'ok'], ['failed', 'failed']];
if (wanted.outcome && !outcomes.some(([value]) => value === wanted.outcome)) outcomes.push([wanted.outcome, wanted.outcome]);
const filters = h('form', { class: 'bar', role: 'search', onsubmit: (event) => { event.preventDefault(); change(); } },
  choose('kind', 'What', [['call', 'Calls'], ['decision', 'Decisions'], ['change', 'Changes'], ['device', 'Devices'], ['', 'Everything']]),
  text('device', 'Device', 'Any'), text('principal', 'Caller', 'Any'), choose('outcome', 'Outcome', outcomes), text('run', 'Run', 'Any'));

function change() {
  for (const { name, value } of filters.elements) if (name) wanted[name] = value.trim();
  wanted.before = '';
  history.replaceState(null, '', `calls?${new URLSearchParams(wanted)}`);
  newest.hidden = true;
  refresh();
}

function row(one) {
  return keyed(one.id, [h('a', { href: page('call', { id: one.id }) }, ago(one.at)), foreign(one.principal), one.door,
    one.device ? h('a', { href: page('device', { id: one.device }) }, foreign(one.device)) : '–',
    toolName(one.tool ?? one.name), outcome(one.outcome), one.kind === 'call' ? duration(one.duration_us) : '']);
}

async function refresh() {
  const { records } = await get('audit', { ...wanted, limit: PAGE });
  older.hidden = records.length < PAGE;
  if (records.length) older.setAttribute('href', page('calls', { ...wanted, before: records.at(-1).id }));
  replace(list, records.length ? table('Calls', ['When', 'Caller', 'Endpoint', 'Device', 'Tool', 'Outcome', 'Time'], records.map(row)) : h('p', { class: 'quiet' }, 'Nothing fits.'));
}

show(filters, h('section', { class: 'card' }, list, h('div', { class: 'row' }, newest, older)));
live(['calls', 'approvals'], refresh);
