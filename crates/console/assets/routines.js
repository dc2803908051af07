import { foreign, h, page, show, state } from './dom.js';
import { get } from './gateway.js';
import { live } from './live.js';

live(['devices', 'tools'], async () => {
  const [{ devices }, status] = await Promise.all([get('devices', { family: 'routine' }), get('status')]);
  const cards = await Promise.all(devices.map(async (device) => {
    const { tools } = await get('tools', { device: device.id });
    const problems = Array.isArray(device.attributes.problems) ? device.attributes.problems : [];
    return h('section', { class: 'card' },
      h('div', { class: 'row apart' }, h('h2', {}, foreign(device.name ?? device.id)), state(device.state)),
      problems.map((text) => h('p', { class: 'problem' }, foreign(typeof text === 'string' ? text : JSON.stringify(text)))),
      h('ul', { class: 'tools' }, tools.map((tool) => h('li', {}, h('p', {}, h('code', {}, foreign(tool.own_name ?? tool.name)), ' ', h('span', { class: 'quiet' }, foreign(tool.description)))))),
      h('div', { class: 'row' }, h('a', { class: 'button', href: page('device', { id: device.id }) }, 'Run'), h('a', { class: 'button', href: page('calls', { device: device.id }) }, 'Its runs')));
  }));
  show(status.routines ? h('p', { class: 'quiet' }, 'Read from ', h('code', {}, status.routines), ' on the machine of the gateway.') : '',
    cards.length ? cards : h('p', { class: 'card' }, 'There are no routines. ', h('code', {}, 'sinew routine record'), ' makes one of calls, and a file in that folder is one.'));
});
