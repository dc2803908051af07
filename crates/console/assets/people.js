import { action, ago, carefully, copier, foreign, h, isAdmin, keyed, replace, show, table } from './dom.js';
import { get, post, remove } from './gateway.js';
import { live } from './live.js';

const list = h('section', { class: 'card' });
const made = h('div', { 'aria-live': 'polite' });
const name = h('input', { autocomplete: 'off', placeholder: 'ada' });
const role = h('select', {}, h('option', { value: 'viewer' }, 'Viewer: looks'), h('option', { value: 'approver' }, 'Approver: also decides about calls'), h('option', { value: 'admin' }, 'Administrator: everything'));

async function add() {
  const person = await post('people', { name: name.value.trim(), role: role.value });
  made.replaceChildren(h('div', { class: 'done' }, h('p', {}, `The passphrase of ${person.name}. It is shown only now:`), h('pre', { tabindex: '0' }, person.passphrase), copier('Copy', () => person.passphrase)));
  name.value = '';
  await refresh();
}

async function refresh() {
  const { people } = await get('people');
  replace(list, people.length ? table('People', ['Name', 'Role', 'Added', 'Action'], people.map((one) => keyed(one.name, [foreign(one.name), one.role, ago(one.created),
    isAdmin() ? carefully('Remove', 'Press again to remove', async () => { await remove(`people/${encodeURIComponent(one.name)}`); await refresh(); }) : '']))) : h('p', { class: 'quiet' }, 'Nobody has a passphrase yet. Everybody signs in with an admin token.'));
}

show(isAdmin() && h('section', { class: 'card' }, h('h2', {}, 'Add a person'), h('p', { class: 'quiet' }, 'Adding somebody who is listed makes a new passphrase and ends their sessions.'), h('form', { class: 'bar', onsubmit: (event) => event.preventDefault() },
  h('label', {}, 'Name', name), h('label', {}, 'Role', role), action('Add', add, { class: 'primary' })), made), list);
live([], refresh);
