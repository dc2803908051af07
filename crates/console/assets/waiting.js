import { action, ago, carefully, foreign, h, isAdmin, keyed, replace, show, table } from './dom.js';
import { get, post, remove } from './gateway.js';
import { live, whenOver } from './live.js';

const boards = h('section', { class: 'card' });
const found = h('section', { class: 'card' });
const url = h('input', { type: 'url', placeholder: 'http://192.168.1.20/mcp' });
const servers = h('div', {});

let oldestEnds;
const showBoards = live(['boards'], async () => {
  const { boards: list } = await get('boards');
  oldestEnds = whenOver(list.length && { until: Math.min(...list.map((one) => one.until)) }, showBoards, oldestEnds);
  // The list moves as boards come and go, so that one press must not approve another board than the one that was read.
  const approve = (one) => carefully('Approve', `Press again: the board shows ${one.code}`, async () => { await post('boards/approve', { code: one.code }); await showBoards(); }, { class: 'primary' });
  replace(boards, h('h2', {}, 'Boards that wait for approval'), h('p', { class: 'quiet' }, 'Compare the code with the one that the board shows or says.'), list.length
    ? table('Boards that wait', ['Code', 'Kind', 'Version', 'Hardware id', 'Address', 'Since', 'Action'], list.map((one) => keyed(one.code, [h('strong', { class: 'mono' }, one.code), foreign(one.kind), foreign(one.version), h('code', {}, foreign(one.hardware_id)), one.address, ago(one.since),
      isAdmin() ? approve(one) : ''])))
    : h('p', {}, 'No board waits.'));
});

const showServers = live(['servers'], async () => {
  const { servers: list } = await get('servers');
  replace(servers, list.length
    ? table('Servers', ['Name', 'Address', 'Named by', 'Action'], list.map((one) => keyed(one.name, [foreign(one.name), h('code', {}, foreign(one.address)), one.source === 'added' ? 'an administrator' : 'the configuration',
      isAdmin() && one.source === 'added' ? carefully('Remove', 'Press again to remove', async () => { await remove(`servers/${encodeURIComponent(one.name)}`); await showServers(); }) : ''])))
    : h('p', {}, 'None.'));
});

async function addServer() {
  await post('servers', { url: url.value.trim() });
  url.value = '';
  await showServers();
}

function showFound() {
  const list = h('div', { 'aria-live': 'polite' });
  const look = async () => {
    const answer = await get('found-servers');
    replace(list, answer.problem ? h('p', { class: 'problem' }, answer.problem) : '', answer.found.length
      ? table('Servers on the network', ['Name', 'Calls itself', 'Address', 'Action'], answer.found.map((one) => keyed(one.url, [foreign(one.name), foreign(one.announced), h('code', {}, foreign(one.url)), action('Add', async () => { await post(`found-servers/${encodeURIComponent(one.name)}`); await showServers(); await look(); })])))
      : h('p', {}, 'No server announces itself that is not added already.'));
  };
  found.replaceChildren(h('h2', {}, 'Servers on the network'), h('div', { class: 'row' }, action('Look for servers', look)), list);
}

show(boards, h('section', { class: 'card' }, h('h2', {}, 'MCP servers that Sinew calls'), servers,
  isAdmin() && h('form', { class: 'bar', onsubmit: (event) => event.preventDefault() }, h('label', {}, 'Address of a server', url), action('Add', addServer))), isAdmin() && found);
showFound();
