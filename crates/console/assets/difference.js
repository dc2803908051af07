// Two texts line by line: what is gone, what is new, and a few lines around them.

import { h } from './dom.js';

// Beyond so many pairs of lines, all of the old text and then all of the new one are shown.
const MOST_PAIRS = 1_000_000;
const AROUND = 3;

/** The lengths of the longest common rests of two lists of lines, for each pair of places. */
function commonRests(one, two) {
  const rests = Array.from({ length: one.length + 1 }, () => new Uint32Array(two.length + 1));
  for (let row = one.length - 1; row >= 0; row -= 1) {
    for (let column = two.length - 1; column >= 0; column -= 1) {
      rests[row][column] = one[row] === two[column] ? rests[row + 1][column + 1] + 1 : Math.max(rests[row + 1][column], rests[row][column + 1]);
    }
  }
  return rests;
}

/** The lines of both texts in order, each with `-`, `+` or a space before it. */
function marked(one, two) {
  if (one.length * two.length > MOST_PAIRS) return [...one.map((line) => ['-', line]), ...two.map((line) => ['+', line])];
  const rests = commonRests(one, two);
  const lines = [];
  let [row, column] = [0, 0];
  while (row < one.length || column < two.length) {
    if (row < one.length && column < two.length && one[row] === two[column]) {
      lines.push([' ', one[row]]);
      row += 1;
      column += 1;
    } else if (column >= two.length || (row < one.length && rests[row + 1][column] >= rests[row][column + 1])) {
      lines.push(['-', one[row]]);
      row += 1;
    } else {
      lines.push(['+', two[column]]);
      column += 1;
    }
  }
  return lines;
}

/** How two texts differ; without a first one, all lines are new. */
export function difference(before, after) {
  const [one, two] = [before === undefined ? [] : before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < Math.min(one.length, two.length) && one[start] === two[start]) start += 1;
  let end = 0;
  while (end < Math.min(one.length, two.length) - start && one.at(-1 - end) === two.at(-1 - end)) end += 1;
  const same = (lines) => lines.map((line) => [' ', line]);
  const lines = [...same(two.slice(0, start)), ...marked(one.slice(start, one.length - end), two.slice(start, two.length - end)), ...same(two.slice(two.length - end))];
  const isNear = (place) => lines.slice(Math.max(0, place - AROUND), place + AROUND + 1).some(([mark]) => mark !== ' ');
  const shown = lines.flatMap(([mark, line], place) => {
    if (isNear(place)) return h({ '-': 'del', '+': 'ins', ' ': 'span' }[mark], {}, `${mark} ${line}`);
    return place === 0 || isNear(place - 1) ? h('span', { class: 'quiet' }, '  …') : [];
  });
  return h('pre', { class: 'difference', tabindex: '0' }, shown);
}
