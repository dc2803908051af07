// The picture of a phone's screen: one after another, and where on the phone a place on it is.

import { h, svg, visible } from './dom.js';
import { failed } from './gestures.js';
import { call } from './gateway.js';

// Between two pictures; the gateway answers when the screen has changed.
const PAUSE = 100;
// While picture and phone say different things about how it is turned.
const TURNING = 500;
const RETRY = 3000;

/** The screen of a phone; `changed` runs after each other picture. */
export function phoneScreen(id, changed) {
  const picture = h('img', { alt: 'The screen of the phone', draggable: 'false', tabindex: '0', hidden: true, 'aria-describedby': 'screen-help' });
  const overlay = svg('svg', { 'aria-hidden': 'true', preserveAspectRatio: 'none' });
  const node = h('div', { class: 'screen' }, picture, overlay);
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  // What the phone says, in pixels of its rotation, and the picture's form when it said so.
  let size = null;
  let form = '';
  let seen = '';
  let isLive = true;
  let isLooking = false;

  const formNow = () => `${picture.naturalWidth} ${picture.naturalHeight}`;
  /** A picture of another form is of a phone that was turned or folded. */
  const isTurned = () => form !== formNow();

  async function readSize() {
    const now = formNow();
    const info = await call(id, 'get_screen_info', {});
    const { width, height } = info.structuredContent ?? JSON.parse(info.content[0].text);
    // While it turns, the phone may still say what was.
    const isOf = Math.abs((width * picture.naturalHeight) / (height * picture.naturalWidth) - 1) < 0.02;
    if (!isOf || now !== formNow()) return;
    size = { width, height };
    form = now;
    overlay.replaceChildren();
    overlay.setAttribute('viewBox', `0 0 ${width} ${height}`);
  }

  /** The next picture that differs from the known one; the gateway waits some seconds for one. The whole view is one record. */
  async function take(known) {
    const query = new URLSearchParams({ max_side: '900', quality: '60', ...(known ? { known } : {}) });
    const response = await fetch(`api/v1/phones/${encodeURIComponent(id)}/screen?${query}`);
    if (response.status === 401) location.assign('login');
    if (response.status === 304 || response.status === 401) return;
    if (!response.ok) {
      const answer = await response.json().catch(() => ({}));
      throw new Error(answer.message ?? answer.error?.error_message ?? `the gateway answered ${response.status}`);
    }
    problem.hidden = true;
    const digest = (response.headers.get('etag') ?? '').replaceAll('"', '');
    if (digest === seen) return;
    seen = digest;
    const before = picture.src;
    picture.src = URL.createObjectURL(await response.blob());
    await picture.decode();
    if (before.startsWith('blob:')) URL.revokeObjectURL(before);
    picture.hidden = false;
    node.classList.toggle('wide', picture.naturalWidth > picture.naturalHeight);
    changed();
  }

  /** Pictures until somebody stops or looks elsewhere. */
  async function look() {
    if (isLooking) return;
    isLooking = true;
    while (isLive && !document.hidden) {
      try {
        await take(isTurned() ? '' : seen);
        if (isTurned()) await readSize();
        await new Promise((done) => setTimeout(done, isTurned() ? TURNING : PAUSE));
      } catch (error) {
        problem.textContent = visible(error.message);
        problem.hidden = false;
        await new Promise((done) => setTimeout(done, RETRY));
      }
    }
    isLooking = false;
  }
  document.addEventListener('visibilitychange', look);

  /** Where on the phone an event is; `null` as long as that is not known. */
  function place(event) {
    if (!size || isTurned()) {
      failed(new Error('The screen is being measured, because it is new or was turned. Try again.'));
      return null;
    }
    const box = picture.getBoundingClientRect();
    const within = (value, most) => Math.min(Math.max(Math.round(value), 0), most - 1);
    return { x: within(((event.clientX - box.left) / box.width) * size.width, size.width), y: within(((event.clientY - box.top) / box.height) * size.height, size.height) };
  }

  return {
    node, picture, problem, look, place,
    /** What gestures on the picture are about; another object after the phone was turned. */
    size: () => size,
    setLive(wanted) {
      isLive = wanted;
      look();
    },
    /** One more picture, where none come by themselves. */
    async refresh() {
      if (isLive) return;
      await take();
      if (isTurned()) await readSize();
    },
    mark: (at) => overlay.replaceChildren(...(at ? [svg('rect', at)] : [])),
  };
}

/** Turns what a pointer does on the picture into gestures. */
export function pointOn(screen, act) {
  const { picture } = screen;
  let down = null;
  picture.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    picture.focus({ preventScroll: true });
    picture.setPointerCapture(event.pointerId);
    const at = screen.place(event);
    down = at && { at, size: screen.size(), time: performance.now() };
  });
  picture.addEventListener('pointercancel', () => { down = null; });
  picture.addEventListener('pointerup', (event) => {
    const end = down && screen.place(event);
    // A gesture that began before the phone was turned meant something else.
    if (!end || down.size !== screen.size()) {
      down = null;
      return;
    }
    const { at, size, time } = down;
    down = null;
    const held = Math.round(performance.now() - time);
    const where = `${at.x}, ${at.y}`;
    if (Math.hypot(end.x - at.x, end.y - at.y) > Math.min(size.width, size.height) / 30) act('swipe', { x1: at.x, y1: at.y, x2: end.x, y2: end.y, duration: Math.min(Math.max(held, 100), 3000) }, `Swipe from ${where} to ${end.x}, ${end.y}`, 'Swiped');
    else if (held > 600) act('long_press', at, `Press and hold at ${where}`, 'Pressed and held');
    else act('tap', at, `Tap at ${where}`, 'Tapped');
  });
}
