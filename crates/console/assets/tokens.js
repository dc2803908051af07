import { action, ago, carefully, copier, foreign, h, isAdmin, keyed, replace, show, table } from './dom.js';
import { get, items, post, remove } from './gateway.js';
import { live } from './live.js';

const list = h('section', { class: 'card' });
const signIns = h('section', { class: 'card', hidden: true });
const made = h('div', { 'aria-live': 'polite' });
const label = h('input', { required: true, placeholder: 'tablet' });
const role = h('select', {}, h('option', { value: 'client' }, 'Client: lists and calls tools'), h('option', { value: 'admin' }, 'Administrator: everything'), h('option', { value: 'device' }, 'Device: connects one board or provider'));
const days = h('input', { type: 'number', min: 1, max: 3650, placeholder: 'never' });

async function create() {
  const isDevice = role.value === 'device';
  const token = await post('tokens', { role: role.value, label: label.value.trim(), ...(isDevice ? { device: label.value.trim() } : {}), ...(days.value ? { expires_in_s: Number(days.value) * 86400 } : {}) });
  made.replaceChildren(h('div', { class: 'done' }, h('p', {}, `Token ${token.id}. It is shown only now:`), h('pre', { tabindex: '0' }, token.token), copier('Copy', () => token.token)));
  label.value = '';
  await refresh();
}

async function refresh() {
  const [{ found: tokens }, { enabled, sign_ins: clients }] = await Promise.all([items('tokens', 'tokens'), get('sign-ins')]);
  replace(list, table('Tokens', ['Name', 'Role', 'Made', 'Last use', 'Expires', 'Action'], tokens.map((one) => keyed(one.id, [
    [foreign(one.label), ' ', h('span', { class: 'quiet mono' }, one.id)], one.role, one.created ? ago(one.created) : '–', one.last_use ? ago(one.last_use) : 'never',
    one.expires ? ago(one.expires) : 'never', isAdmin() && one.created ? carefully('Revoke', 'Press again to revoke', async () => { await remove(`tokens/${encodeURIComponent(one.id)}`); await refresh(); }) : '']))));
  signIns.hidden = !enabled;
  replace(signIns, h('h2', {}, 'Signed-in clients'), clients.length ? table('Signed-in clients', ['Caller', 'Client', 'Allowed', 'Last use', 'Ends', 'Action'], clients.map((one) => keyed(one.id, [
    [foreign(one.caller), ' ', h('span', { class: 'quiet mono' }, one.id)], foreign(one.client), ago(one.created), ago(one.last_use), ago(one.ends),
    isAdmin() ? carefully('Sign out', 'Press again to sign out', async () => { await remove(`sign-ins/${encodeURIComponent(one.id)}`); await refresh(); }) : '']))) : h('p', { class: 'quiet' }, 'No client is signed in.'));
}

show(isAdmin() && h('section', { class: 'card' }, h('h2', {}, 'New token'), h('form', { class: 'bar', onsubmit: (event) => event.preventDefault() },
  h('label', {}, 'Name, or the id of the device', label), h('label', {}, 'Role', role), h('label', {}, 'Days until it expires', days), action('Create', create, { class: 'primary' })), made), list, signIns);
live([], refresh);
