// What comes next where the policy asks a person before a call.

import { action, h, page } from './dom.js';
import { post } from './gateway.js';

const approvals = () => h('a', { href: 'approvals' }, 'Approvals');

/** The question before a call that the policy asks a person about, with the way to make it; `null` for any other call. */
export async function question(device, tool, args, make) {
  const said = await post('policy/explain', { device, tool, arguments: args });
  if (said.verdict !== 'ask') return null;
  const asks = `The policy asks a person before this call (${said.reason}).`;
  return h('div', { class: 'note' }, said.may_confirm
    ? [h('p', {}, asks), action('Confirm and call', () => make({ confirmed: true }), { class: 'danger' })]
    : [h('p', {}, asks, ' You signed in with a token, so somebody else decides: the call waits under ', approvals(), '.'), action('Call and wait', () => make({}), { class: 'primary' })]);
}

/** What is shown while a call waits for somebody. */
export const waits = () => h('p', { class: 'note' }, 'Nothing is sent yet: the call waits until somebody decides about it under ', approvals(), '.');

/** What is next for a call that nobody decided about in time; `null` for any other failure. */
export function stillWaits(error, make) {
  const { error_type: type, error_details: details } = error.details ?? {};
  if (type !== 'ApprovalNeeded') return null;
  return h('div', { class: 'note' },
    h('p', {}, 'Nobody has decided about this call yet, and nothing was sent. ', h('a', { href: page('approval', { id: details?.approval }) }, 'The question'), ' stays open for ten minutes; once it is allowed, call again.'),
    action('Call again', () => make({}), { class: 'primary' }));
}
