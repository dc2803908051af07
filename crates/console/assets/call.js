import { ago, copier, duration, facts, foreign, h, outcome, page, parameters, show } from './dom.js';
import { get } from './gateway.js';
import { live } from './live.js';
import { result, tree } from './result.js';

const id = Number(parameters().get('id'));

function args(text) {
  try {
    return h('div', { class: 'tree' }, tree(JSON.parse(text)));
  } catch {
    return h('pre', { tabindex: '0' }, text);
  }
}

/** What the journal kept of the call, while it is on. */
async function answer(one) {
  if (one.kind !== 'call' || !one.device) return '';
  const { on, calls } = await get('journal', { device: one.device, limit: 1000 });
  const kept = calls.find((call) => call.at === one.at && call.tool === one.tool && call.principal === one.principal);
  if (!kept) return h('section', { class: 'card' }, h('h2', {}, 'Answer'), h('p', { class: 'quiet' }, on ? 'The journal does not have this call any more.' : 'Answers are kept only while the journal is on.'));
  const screens = [['Before', kept.screen_before], ['After', kept.screen_after]].filter(([, text]) => text);
  return h('section', { class: 'card' }, h('h2', {}, 'Answer'), kept.result ? result(kept.result) : h('div', { class: 'tree' }, tree(kept.error)),
    screens.map(([name, text]) => h('details', {}, h('summary', {}, `The screen: ${name.toLowerCase()}`), h('pre', { tabindex: '0' }, text))));
}

live([], async () => {
  const { records } = await get('audit', { before: id + 1, limit: 1 });
  const [one] = records.filter((record) => record.id === id);
  if (!one) {
    show(h('p', { class: 'problem' }, `The audit has no record ${id}.`));
    return;
  }
  document.getElementById('title').textContent = one.kind === 'call' ? `Call ${id}` : `Record ${id}`;
  show(h('section', { class: 'card' },
    facts([['When', [ago(one.at), ' ', h('span', { class: 'quiet' }, new Date(one.at).toISOString())]], ['Outcome', outcome(one.outcome)], ['Time', one.kind === 'call' ? duration(one.duration_us) : null],
      ['Caller', h('a', { href: page('calls', { principal: one.principal }) }, foreign(one.principal))], ['Endpoint', one.door], ['Device', one.device ? h('a', { href: page('device', { id: one.device }) }, foreign(one.device)) : null],
      ['Tool', one.tool ? h('code', {}, foreign(one.tool)) : null], ['Called as', h('code', {}, foreign(one.name))], ['What decided', one.decided], ['Run', one.run ? h('a', { href: page('calls', { run: one.run }) }, one.run) : null],
      ['Bytes of the answer', one.bytes || null], ['Digest of the arguments', one.args_digest ? h('code', {}, one.args_digest) : null]])),
  h('section', { class: 'card' }, h('h2', {}, one.kind === 'call' ? 'Arguments, without secrets' : 'Details'), args(one.args), h('div', { class: 'row' }, copier('Copy as JSON', () => JSON.stringify(one, null, 2)))), await answer(one));
});
