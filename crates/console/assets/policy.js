import { action, facts, foreign, h, keyed, many, page, replace, show, table, toolName } from './dom.js';
import { items, post } from './gateway.js';
import { live } from './live.js';

const KINDS = { read: 'good', change: 'away', danger: 'bad', unmarked: 'warn' };
const effects = h('section', { class: 'card' });
const answer = h('div', { 'aria-live': 'polite' });
const device = h('input', {});
const tool = h('input', {});
const token = h('input', { placeholder: 'you' });
const args = h('textarea', { rows: 3, value: '{}', spellcheck: 'false' });

const word = (text) => h('span', { class: `state ${KINDS[text] ?? ''}` }, text);

async function explain() {
  const said = await post('policy/explain', { device: device.value.trim(), tool: tool.value.trim(), arguments: JSON.parse(args.value || '{}'), ...(token.value.trim() ? { token: token.value.trim() } : {}) });
  const verdicts = { allow: 'good', ask: 'warn', deny: 'bad' };
  answer.replaceChildren(facts([['Verdict', h('span', { class: `state ${verdicts[said.verdict]}` }, said.verdict)], ['Because of', said.reason], ['Listed for the caller', said.listed ? 'yes' : 'no'], ['Where no rule decides', said.default], ['Effect of the tool', [said.effect.effect, said.effect.source ? `, says ${said.effect.source}` : '']]]),
    said.rules.length ? table('Rules that match', ['Rule', 'Result', 'Says'], said.rules.map((rule) => [h('code', {}, rule.id), rule.result, rule.verdict ?? '–'])) : h('p', { class: 'quiet' }, 'No rule matches.'));
}

const PAGE = 50;
let shown = PAGE;
const anew = () => {
  shown = PAGE;
  refresh();
};
let typing;
const search = h('input', { type: 'search', oninput() { clearTimeout(typing); typing = setTimeout(anew, 150); } });
const kind = h('select', { onchange: anew }, h('option', { value: '' }, 'Any effect'), Object.keys(KINDS).map((one) => h('option', { value: one }, one)));
const list = h('div', {});

async function refresh() {
  const { found, total } = await items('policy/effects', 'tools', { search: search.value.trim(), effect: kind.value }, shown);
  replace(list, h('p', { class: 'quiet' }, many(total, 'tool')), found.length ? table('Effects', ['Device', 'Tool', 'Effect', 'Who says so', 'Guess', 'Action'], found.map((one) => keyed(`${one.device} ${one.tool}`, [
    h('a', { href: page('device', { id: one.device }) }, foreign(one.device)), toolName(one.tool), word(one.effect), one.source ?? 'nobody', one.effect === 'unmarked' ? one.proposal : '',
    h('button', { type: 'button', class: 'plain', onclick() { device.value = one.device; tool.value = one.tool; device.scrollIntoView({ block: 'center' }); } }, 'Explain')]))) : '',
  total > found.length ? h('button', { type: 'button', onclick() { shown += PAGE; refresh(); } }, 'Show more') : '');
}

effects.append(h('h2', {}, 'What each tool does'), h('div', { class: 'bar' }, h('label', {}, 'Search', search), h('label', {}, 'Effect', kind)), list);
show(h('section', { class: 'card' }, h('h2', {}, 'What would happen to a call'), h('p', { class: 'quiet' }, 'The call is not made.'), h('form', { class: 'form', onsubmit: (event) => event.preventDefault() },
  h('div', { class: 'bar' }, h('label', {}, 'Device', device), h('label', {}, 'Tool', tool), h('label', {}, 'Name of a token', token)), h('label', {}, 'Arguments', args), h('div', { class: 'row' }, action('Explain', explain, { class: 'primary' }))), answer), effects);
live(['tools', 'devices'], refresh);
