import { action, ago, facts, foreign, h, mayDecide, page, show } from './dom.js';
import { get, post } from './gateway.js';
import { live } from './live.js';

const list = h('div', {});
show(h('p', { class: 'quiet' }, 'Calls that the policy lets nobody make alone. Nothing is sent until you agree; after ten minutes the answer is no. Press A to allow the first once, D to deny it.'), list);

const shown = new Map();

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function card(call) {
  const path = `approvals/${encodeURIComponent(call.id)}`;
  const decide = (decision, seconds) => () => post(path, { decision, ...(seconds ? { for_s: seconds } : {}) });
  const kept = call.keep_s ? `Allow, and later calls of this tool for ${call.keep_s} s` : 'Allow once';
  return h('section', { class: 'card waiting', 'aria-label': `Call ${call.id}` },
    h('h2', {}, foreign(call.principal), ' wants to call ', h('code', {}, foreign(call.tool)), ' on ', foreign(call.device)),
    facts([['Waiting', ago(call.at)], ['Why you are asked', call.reason]]),
    h('pre', { tabindex: '0' }, pretty(call.args)),
    call.args_cut ? h('p', { class: 'note' }, 'This is only the beginning of the arguments. ', h('a', { href: page('approval', { id: call.id }) }, 'Show all of them')) : '',
    mayDecide() ? h('div', { class: 'decision' },
      action(kept, decide('approve'), { class: 'primary', 'data-key': 'a' }),
      action('Allow for ten minutes, with any arguments', decide('approve', 600)),
      action('Deny', decide('deny'), { class: 'danger', 'data-key': 'd' }),
      h('a', { class: 'button', href: page('approval', { id: call.id }) }, 'Open alone')) : h('p', { class: 'quiet' }, 'Your role only looks.'));
}

live(['approvals'], async () => {
  const { approvals } = await get('approvals');
  const ids = new Set(approvals.map((call) => call.id));
  for (const [id, node] of shown) {
    if (!ids.has(id)) {
      node.remove();
      shown.delete(id);
    }
  }
  list.querySelector(':scope > .empty')?.remove();
  for (const call of approvals) {
    if (shown.has(call.id)) continue;
    const node = card(call);
    shown.set(call.id, node);
    list.append(node);
  }
  if (!approvals.length) list.append(h('p', { class: 'card empty' }, 'No call waits.'));
});

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const key = event.key.toLowerCase();
  if (key === 'a' || key === 'd') list.querySelector(`[data-key="${key}"]`)?.click();
});
