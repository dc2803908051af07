// Gestures on a phone. Each is one call, which is checked and recorded like any other.

import { question, stillWaits, waits } from './asks.js';
import { h, isAdmin, say, visible } from './dom.js';
import { call } from './gateway.js';

export const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
export const notice = h('div', { 'aria-live': 'polite' });

export const failed = (error) => {
  problem.textContent = visible(error.message);
  problem.hidden = false;
  problem.scrollIntoView({ block: 'nearest' });
};

/** Makes gestures on a phone; `made` runs after each. What somebody must decide first is asked below the picture. */
export function gestures(id, made) {
  /** `does` says what it does, `did` what it did; `decided` is what was decided about the policy's question. */
  const act = async (tool, args, does, did, decided) => {
    if (!isAdmin()) return;
    const again = (now) => act(tool, args, does, did, now);
    const tell = (node) => {
      notice.replaceChildren(...(node ? [h('section', { class: 'card waiting' }, h('h2', {}, does), node)] : []));
      if (node) notice.scrollIntoView({ block: 'nearest' });
    };
    problem.hidden = true;
    try {
      const asks = decided ? null : await question(id, tool, args, again);
      tell(asks ?? (decided && !decided.confirmed ? waits() : null));
      if (asks) return;
      await call(id, tool, args, decided);
      tell(null);
      say(did);
    } catch (error) {
      const next = stillWaits(error, again);
      tell(next);
      if (!next) failed(error);
    }
    made();
  };
  return act;
}

// What keys of a keyboard are on the phone. Tab is not among them: it leads on to the rest of the page.
const KEYS = {
  Enter: 'ENTER', Backspace: 'DEL', Delete: 'FORWARD_DEL', Escape: 'BACK', ArrowUp: 'UP', ArrowDown: 'DOWN', ArrowLeft: 'LEFT', ArrowRight: 'RIGHT',
  Home: 'MOVE_HOME', End: 'MOVE_END', PageUp: 'PAGE_UP', PageDown: 'PAGE_DOWN',
};
// Letters that come this close together are one text.
const TYPING_PAUSE = 500;

/** Types on the phone what is typed or pasted while an element has the focus; `write` writes a text. */
export function typeOn(element, act, write) {
  let typed = '';
  let pause;
  // A key comes after the letters before it.
  let last = Promise.resolve();
  const inOrder = (run) => { last = last.then(run).catch(failed); };
  const send = () => {
    clearTimeout(pause);
    const text = typed;
    typed = '';
    if (text) inOrder(() => write(text));
  };
  const add = (text) => {
    typed += text;
    clearTimeout(pause);
    pause = setTimeout(send, TYPING_PAUSE);
  };
  element.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState('AltGraph')) return;
    const key = KEYS[event.key];
    const isText = [...event.key].length === 1;
    if (!key && !isText) return;
    event.preventDefault();
    if (isText) add(event.key);
    // A key that is held down is pressed once.
    else if (!event.repeat) {
      send();
      inOrder(() => act('press_key', { key }, `Press ${key}`, `Pressed ${key}`));
    }
  });
  element.addEventListener('paste', (event) => {
    event.preventDefault();
    add(event.clipboardData.getData('text/plain'));
    send();
  });
  element.addEventListener('blur', send);
}
