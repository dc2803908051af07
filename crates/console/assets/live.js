// One stream for the page, which says what kind of thing changed. It is closed while nobody looks.

import { content, h, say, visible } from './dom.js';
import { get } from './gateway.js';

// Changes come as fast as calls end; nobody reads faster than this.
const PAUSE = 1000;
// How long a page whose stream was refused goes without, and until what could not be read is read again.
const REOPEN = 10000;
const watchers = [];
let stream = null;

/** Runs `refresh` now and whenever something of these kinds changed, one run at a time. Returns a way to run it once more. */
export function live(kinds, refresh) {
  let running = false;
  let again = false;
  const run = async () => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    do {
      again = false;
      try {
        await refresh();
      } catch (error) {
        // What is shown stays; where nothing is shown yet, the reason is.
        if (content()?.querySelector(':scope > .quiet:only-child')) {
          content().replaceChildren(h('p', { class: 'problem', role: 'alert' }, visible(error.message)));
        }
        // Not a refusal, but a gateway that could not be reached or was too busy.
        if (!(error.status < 500)) setTimeout(run, REOPEN);
      }
      // What changes meanwhile is shown together.
      await new Promise((done) => setTimeout(done, PAUSE));
    } while (again);
    running = false;
  };
  watchers.push({ kinds, run });
  run();
  return run;
}

/** Runs `refresh` when something is over that ends by itself, which nothing else says. */
export function whenOver(one, refresh, timer) {
  clearTimeout(timer);
  // The clocks of browser and gateway may differ, and a timer holds 24 days.
  return one ? setTimeout(refresh, Math.min(Math.max(one.until - Date.now() + 500, 2000), 2 ** 31 - 1)) : undefined;
}

function changed(kinds) {
  for (const watcher of watchers) {
    if (kinds === null || watcher.kinds.some((kind) => kinds.includes(kind))) watcher.run();
  }
}

function open() {
  if (stream || document.hidden) return;
  stream = new EventSource('stream');
  // The first one too: what changed after the page read and before the gateway listened is told by nothing else.
  stream.addEventListener('reset', () => changed(null));
  stream.addEventListener('change', (event) => changed(JSON.parse(event.data).kinds));
  // The browser tries again by itself, but not after a refusal: too many pages are open, or the session is over, which
  // the requests of the page find out.
  stream.addEventListener('error', () => {
    if (stream?.readyState !== EventSource.CLOSED) return;
    stream = null;
    changed(null);
    setTimeout(open, REOPEN);
  });
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    stream?.close();
    stream = null;
  } else {
    open();
    changed(null);
  }
});
addEventListener('pagehide', () => stream?.close());

const title = document.title;
let known = 0;
live(['approvals'], async () => {
  const { approvals } = await get('approvals');
  const count = approvals.length;
  const badge = document.getElementById('waiting');
  badge.textContent = count;
  badge.hidden = count === 0;
  badge.setAttribute('aria-label', `${count} waiting`);
  document.title = count ? `(${count}) ${title}` : title;
  if (count > known) say(count === 1 ? 'A call waits for approval' : `${count} calls wait for approval`);
  known = count;
});
open();
