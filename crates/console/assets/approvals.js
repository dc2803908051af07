import { action, ago, carefully, facts, foreign, h, keyed, mayDecide, page, replace, show, table, takeFocus } from './dom.js';
import { get, post, remove } from './gateway.js';
import { live, whenOver } from './live.js';

const EFFECTS = { read: ['good', 'only reads'], change: ['away', 'changes something'], danger: ['bad', 'can do harm'], unmarked: ['warn', 'nobody said what it does'] };
const COVERS = { once: 'this call, once', any_arguments: 'any arguments', same_arguments: 'these arguments' };
const list = h('div', {});
const grants = h('section', { class: 'card' });
show(h('p', { class: 'quiet' }, 'Calls that the policy lets nobody make alone. Nothing is sent until you agree; after ten minutes the answer is no. Press A to allow the first once, D to deny it.'), list, grants);

const shown = new Map();

function pretty(text) {
  try {
    const value = JSON.parse(text);
    // A number that this would round is shown as it was written.
    return JSON.stringify(value) === text ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

// A card that leaves moves those below it, so that a press may land on another call than the one that was read.
const SETTLE = 800;
let moved = -SETTLE;
const isSettled = () => performance.now() - moved > SETTLE;

function card(call) {
  const path = `approvals/${encodeURIComponent(call.id)}`;
  const decide = (decision, more) => () => {
    if (decision === 'approve' && !isSettled()) throw new Error('The list just moved. Look again, and press again.');
    return post(path, { decision, ...more });
  };
  const kept = call.keep_s ? `Allow, and later calls of this tool for ${call.keep_s} s` : 'Allow once';
  const [kind, does] = EFFECTS[call.effect] ?? EFFECTS.unmarked;
  const harmless = call.effect === 'read' || call.effect === 'change';
  const alone = page('approval', { id: call.id });
  const deny = action('Deny', decide('deny'), { class: 'danger', 'aria-keyshortcuts': 'D' });
  // Nobody agrees to what they have not seen.
  const buttons = call.args_cut ? [h('a', { class: 'button primary', href: alone }, 'Read all of it and decide'), deny]
    : [action(kept, decide('approve'), { class: 'primary', 'aria-keyshortcuts': 'A' }),
      action('For ten minutes, any arguments', decide('approve', { for_s: 600 })),
      action(harmless ? 'Always, any arguments' : 'Always, these arguments', decide('approve', { always: true })),
      deny, h('a', { class: 'button', href: alone }, 'Open alone')];
  return h('section', { class: 'card waiting', 'aria-label': `Call ${call.id}` },
    h('h2', {}, foreign(call.principal), ' wants to call ', h('code', {}, foreign(call.tool)), ' on ', foreign(call.device)),
    facts([['What it does', h('span', { class: `state ${kind}` }, does)], ['Why you are asked', call.reason], ['Waiting', ago(call.at)]]),
    h('pre', { tabindex: '0' }, pretty(call.args)),
    call.args_cut ? h('p', { class: 'note' }, 'This is only the beginning of the arguments.') : '',
    mayDecide() ? h('div', { class: 'decision' }, buttons) : h('p', { class: 'quiet' }, 'Your role only looks.'));
}

// After so long nobody can decide about a call any more.
const OPEN_TIME = 600000;
let oldestEnds;
const refresh = live(['approvals'], async () => {
  const { approvals } = await get('approvals');
  oldestEnds = whenOver(approvals[0] && { until: approvals[0].at + OPEN_TIME }, refresh, oldestEnds);
  const ids = new Set(approvals.map((call) => call.id));
  for (const [id, node] of shown) {
    if (!ids.has(id)) {
      if (node.nextElementSibling) moved = performance.now();
      if (node.contains(document.activeElement)) takeFocus(list);
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

let grantEnds;
const refreshGrants = live(['approvals', 'calls'], async () => {
  const { grants: all } = await get('grants');
  const ends = all.map((one) => one.ends).filter(Boolean);
  grantEnds = whenOver(ends.length && { until: Math.min(...ends) }, refreshGrants, grantEnds);
  replace(grants, h('h2', {}, 'Allowed in advance'), all.length
    ? table('Allowed in advance', ['Caller', 'Tool', 'Device', 'Covers', 'Allowed by', 'Ends', 'Action'], all.map((one) => keyed(one.id, [
      foreign(one.principal), h('code', {}, foreign(one.tool)), foreign(one.device),
      [COVERS[one.covers] ?? one.covers, one.args ? h('div', { class: 'mono quiet cut' }, foreign(one.args)) : ''], [foreign(one.by), ', ', ago(one.at)],
      one.ends ? ago(one.ends) : 'when it is revoked',
      mayDecide() ? carefully('Revoke', 'Press again to revoke', () => remove(`grants/${encodeURIComponent(one.id)}`)) : ''])))
    : h('p', { class: 'quiet' }, 'Nothing. What you allow for ten minutes or always is listed here, and can be revoked.'));
});

document.addEventListener('keydown', (event) => {
  // A key that is held down decides once.
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const key = event.key.toUpperCase();
  if (key === 'A' || key === 'D') list.querySelector('section')?.querySelector(`[aria-keyshortcuts="${key}"]`)?.click();
});
