// Shows the result of a call: texts as text, values as a tree, pictures as pictures. Nothing a device sent becomes HTML.

import { copier, h } from './dom.js';

const MAGIC = [['image/png', [0x89, 0x50, 0x4e, 0x47]], ['image/jpeg', [0xff, 0xd8, 0xff]], ['image/gif', [0x47, 0x49, 0x46, 0x38]], ['image/webp', [0x52, 0x49, 0x46, 0x46]]];

/** An address for a picture whose bytes are those of a picture; others are never shown. */
export function pictureAddress(base64) {
  let bytes;
  try {
    bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
  } catch {
    return null;
  }
  const kind = MAGIC.find(([, start]) => start.every((byte, place) => bytes[place] === byte));
  return kind ? URL.createObjectURL(new Blob([bytes], { type: kind[0] })) : null;
}

export function tree(value, name, depth = 0) {
  const key = name === undefined ? null : [h('span', { class: 'key' }, name), ': '];
  if (value === null || typeof value !== 'object') return h('div', { class: 'leaf mono' }, key, JSON.stringify(value));
  const entries = Array.isArray(value) ? value.map((one, place) => [String(place), one]) : Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const details = h('details', { open: depth < 2 && entries.length <= 50 }, h('summary', { class: 'mono' }, key, size));
  // Children are made when they are first seen, so that a deep answer costs nothing.
  const fill = () => details.childElementCount === 1 && details.append(...entries.slice(0, 500).map(([one, child]) => tree(child, one, depth + 1)), entries.length > 500 ? h('p', { class: 'quiet' }, `${entries.length - 500} more`) : '');
  if (details.open) fill();
  details.addEventListener('toggle', fill);
  return details;
}

function item(one) {
  switch (one.type) {
    case 'text': {
      let value;
      try {
        value = JSON.parse(one.text);
      } catch { /* It is a text. */ }
      if (value !== null && typeof value === 'object') return h('div', { class: 'tree' }, tree(value));
      return h('pre', { tabindex: '0' }, one.text);
    }
    case 'image': {
      const address = pictureAddress(one.data);
      return address ? h('img', { src: address, alt: 'Picture in the answer' }) : h('p', { class: 'note' }, `Not shown: what is called ${one.mimeType} is not a picture in PNG, JPEG, WebP or GIF.`);
    }
    case 'audio': return h('p', { class: 'note' }, `Sound (${one.mimeType}), ${one.data?.length ?? 0} characters of Base64.`);
    case 'resource_link': return h('p', {}, 'Link: ', h('code', {}, one.uri));
    default: return h('div', { class: 'tree' }, tree(one));
  }
}

export function result(answer) {
  const items = (answer.content ?? []).map(item);
  const structured = answer.structuredContent !== undefined && answer.structuredContent !== null && !(answer.content ?? []).some((one) => one.type === 'text' && sameJson(one.text, answer.structuredContent));
  if (structured) items.push(h('div', { class: 'tree' }, tree(answer.structuredContent)));
  return h('div', { class: 'result form' }, items.length ? items : h('p', { class: 'quiet' }, 'The answer is empty.'),
    h('div', { class: 'row' }, copier('Copy the answer as JSON', () => JSON.stringify(answer, null, 2))));
}

function sameJson(text, value) {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(value);
  } catch {
    return false;
  }
}
