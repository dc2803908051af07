// Small pictures of numbers. Each has a sentence for those who do not see it, and a table behind it.

import { h, svg } from './dom.js';

/** Bars over time; `bad` is the part of each that failed. */
export function bars(sentence, values, bad) {
  const most = Math.max(1, ...values);
  const width = 100 / Math.max(values.length, 1);
  const bar = (kind, place, from, size) => size > 0 && svg('rect', { class: kind, x: (place * width).toFixed(2), y: (32 - from - size).toFixed(2), width: Math.max(width - 0.35, 0.4).toFixed(2), height: size.toFixed(2) });
  return svg('svg', { class: 'chart', viewBox: '0 0 100 33', preserveAspectRatio: 'none', role: 'img', 'aria-label': sentence },
    svg('line', { class: 'base', x1: 0, y1: 32.5, x2: 100, y2: 32.5 }),
    values.map((value, place) => {
      const failed = bad?.[place] ?? 0;
      const scale = (one) => (one ? Math.max(1, (one / most) * 31) : 0);
      const low = scale(failed);
      return [bar('bar-bad', place, 0, low), bar('bar-ok', place, low, Math.max(0, scale(value) - low))];
    }));
}

/** Parts of a whole, side by side. */
export function strip(sentence, parts) {
  const all = parts.reduce((sum, part) => sum + part.size, 0) || 1;
  let from = 0;
  return h('div', { class: 'strip' }, svg('svg', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': sentence },
    parts.map((part) => {
      const width = (part.size / all) * 100;
      const rect = svg('rect', { class: `fill-${part.kind}`, x: from.toFixed(3), y: 0, width: width.toFixed(3), height: 10 });
      from += width;
      return rect;
    })));
}

/** One square for each device, or for so many of them, by family; `groups` is [family, [[state, kind, count]]]. */
export function map(sentence, groups, link) {
  const most = Math.max(1, ...groups.map(([, states]) => states.reduce((sum, [, , count]) => sum + count, 0)));
  const each = Math.ceil(most / 240);
  return h('div', { class: 'map', role: 'group', 'aria-label': sentence }, groups.map(([family, states]) => h('div', { class: 'map-group' },
    h('h3', {}, family),
    states.map(([word, kind, count]) => {
      const squares = Math.ceil(count / each);
      const columns = Math.min(24, squares);
      const cells = Array.from({ length: squares }, (_, place) => svg('rect', { class: `fill-${kind}`, x: (place % columns) * 10 + 1, y: Math.floor(place / columns) * 10 + 1, width: 8, height: 8, rx: 2 }));
      return h('a', { class: 'map-state', href: link(family, word) }, svg('svg', { viewBox: `0 0 ${columns * 10} ${Math.ceil(squares / columns) * 10}`, width: columns * 10, 'aria-hidden': 'true' }, cells), h('span', {}, `${count} ${word}`));
    }))), each > 1 ? h('p', { class: 'hint' }, `A square is ${each} devices.`) : '');
}

export function numbers(summary, columns, rows) {
  return h('details', {}, h('summary', {}, summary), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': summary },
    h('table', {}, h('thead', {}, h('tr', {}, columns.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell) => h('td', {}, cell))))))));
}
