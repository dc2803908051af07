import { ago, duration, facts, foreign, h, keyed, many, outcome, page, show, table, toolName } from './dom.js';
import { get } from './gateway.js';
import { live } from './live.js';
import { bars, map, numbers, strip } from './picture.js';

const KINDS = { ready: 'good', away: 'away' };

function fleet(states) {
  const parts = Object.entries(states).map(([word, size]) => ({ word, size, kind: KINDS[word] ?? 'warn' }));
  const all = parts.reduce((sum, part) => sum + part.size, 0);
  const sentence = parts.map((part) => `${part.size} ${part.word}`).join(', ') || 'no devices';
  return h('section', { class: 'card' },
    h('h2', {}, 'Devices'),
    h('p', { class: 'number' }, String(states.ready ?? 0), h('small', {}, ` of ${all} ready`)),
    strip(sentence, parts), h('p', { class: 'quiet' }, sentence),
    h('a', { href: 'devices' }, 'All devices'));
}

/** Every device as a square, by family and state. */
function fleetMap(fleet) {
  const groups = Object.entries(fleet).map(([family, states]) => [family, Object.entries(states).sort(([one], [two]) => (one === 'ready' ? -1 : two === 'ready' ? 1 : one.localeCompare(two))).map(([word, count]) => [word, KINDS[word] ?? 'warn', count])]);
  if (!groups.length) return h('section', { class: 'card' }, h('h2', {}, 'Fleet'), h('p', { class: 'quiet' }, 'No device has connected yet. ', h('a', { href: 'waiting' }, 'Connect one')));
  const link = (family, word) => page('devices', { family, state: word === 'ready' || word === 'away' ? word : 'other' });
  return h('section', { class: 'card' }, h('h2', {}, 'Fleet'), map('Devices by family and state', groups, link));
}

function activity(minutes) {
  const calls = minutes.map((minute) => minute.calls);
  const sum = calls.reduce((one, two) => one + two, 0);
  const failures = minutes.reduce((all, minute) => all + minute.failures, 0);
  const sentence = `${many(sum, 'call')} in the last hour, ${failures} of them failed`;
  return h('section', { class: 'card', 'data-key': 'activity' },
    h('h2', {}, 'Calls in the last hour'),
    h('p', { class: 'number' }, String(sum), h('small', {}, failures ? ` ${failures} failed` : ' none failed')),
    bars(sentence, calls, minutes.map((minute) => minute.failures)),
    numbers('Show as table', ['Minutes ago', 'Calls', 'Failed'],
      minutes.map((minute, place) => [minutes.length - 1 - place, minute.calls, minute.failures]).filter((row) => row[1])));
}

function speed(minutes) {
  const used = minutes.filter((minute) => minute.calls);
  const calls = used.reduce((all, minute) => all + minute.calls, 0);
  const mean = calls ? Math.round(used.reduce((all, minute) => all + minute.mean_us * minute.calls, 0) / calls) : 0;
  const slowest = Math.max(0, ...used.map((minute) => minute.slowest_us));
  return h('section', { class: 'card', 'data-key': 'speed' },
    h('h2', {}, 'Time of a call'),
    h('p', { class: 'number' }, calls ? duration(mean) : '–', h('small', {}, calls ? ` on average, ${duration(slowest)} at most` : ' no calls yet')),
    bars(`${duration(mean)} on average in the last hour`, minutes.map((minute) => minute.mean_us)),
    numbers('Show as table', ['Minutes ago', 'Average', 'Slowest'],
      minutes.map((minute, place) => [minutes.length - 1 - place, duration(minute.mean_us), duration(minute.slowest_us), minute.calls]).filter((row) => row.pop())));
}

function waits(overview) {
  const lines = [];
  if (overview.waiting_calls) lines.push(h('p', {}, h('a', { href: 'approvals' }, many(overview.waiting_calls, 'call')), ' for your decision'));
  if (overview.waiting_boards) lines.push(h('p', {}, h('a', { href: 'waiting' }, many(overview.waiting_boards, 'board')), ' for approval'));
  return h('section', { class: lines.length ? 'card waiting' : 'card' },
    h('h2', {}, 'Waiting for you'),
    lines.length ? lines : h('p', { class: 'quiet' }, 'Nothing.'));
}

function failures(list) {
  const rows = list.slice(0, 10).map((call) => keyed(`${call.at} ${call.device} ${call.tool}`, [
    ago(call.at), call.device ? h('a', { href: page('device', { id: call.device }) }, foreign(call.device)) : '–',
    toolName(call.tool), foreign(call.principal), outcome(call.outcome)]));
  return h('section', { class: 'card' },
    h('div', { class: 'row apart' }, h('h2', {}, 'Newest failures'), h('a', { href: 'calls?outcome=failed' }, 'All')),
    rows.length ? table('Newest failures', ['When', 'Device', 'Tool', 'Caller', 'Outcome'], rows) : h('p', { class: 'quiet' }, 'No call failed since the gateway started.'));
}

live(['devices', 'calls', 'approvals', 'boards'], async () => {
  const overview = await get('overview');
  // The gateway may run for less than an hour.
  const nothing = { calls: 0, failures: 0, mean_us: 0, slowest_us: 0 };
  overview.minutes.unshift(...Array(Math.max(0, 60 - overview.minutes.length)).fill(nothing));
  const problems = [overview.store_problem && `Calls are refused because they cannot be recorded: ${overview.store_problem}`,
    overview.config_problem && `The changed configuration is not in force: ${overview.config_problem}`].filter(Boolean);
  show(problems.map((text) => h('p', { class: 'problem', role: 'alert' }, text)),
    h('div', { class: 'cards' }, fleet(overview.states), activity(overview.minutes), speed(overview.minutes), waits(overview)),
    fleetMap(overview.fleet), failures(overview.failures), h('section', { class: 'card' }, h('h2', {}, 'Gateway'),
      facts([['Version', overview.version], ['Tools', overview.tools],
        ['Families', Object.entries(overview.families).map(([family, count]) => h('span', { class: 'tag' }, `${family} ${count}`))]])));
});
