// Tells politely that something changed while a page is open, and shows it when
// asked. Without it, or where the server says no, the page shows what is new when
// it is loaded again.
(() => {
  'use strict';
  const box = document.querySelector('[data-live]');
  if (!box || !window.EventSource) return;
  const status = box.querySelector('[role="status"]');
  const show = box.querySelector('a');
  const list = document.getElementById(box.dataset.list);
  const seen = new Set();
  let reload = false;

  const announce = () => {
    const n = seen.size;
    status.textContent = reload ? 'There are new changes.' : `${n} new ${n === 1 ? 'change' : 'changes'}.`;
    show.hidden = false;
  };

  const source = new EventSource(box.dataset.live);
  source.addEventListener('commit', (e) => {
    if (document.getElementById(`c-${e.lastEventId}`)) return;
    seen.add(e.lastEventId);
    announce();
  });
  source.addEventListener('reload', () => {
    reload = true;
    announce();
  });
  addEventListener('pagehide', () => source.close());

  // part replaces a region of the page by what it is now, unless the person is
  // in it.
  const part = (next, id) => {
    const old = document.getElementById(id);
    const now = next.getElementById(id);
    if (!old || !now || old.contains(document.activeElement)) return;
    old.replaceWith(document.adoptNode(now));
  };

  show.addEventListener('click', async (e) => {
    if (!list || reload || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    show.setAttribute('aria-disabled', 'true');
    try {
      const res = await fetch(show.href, { credentials: 'same-origin', headers: { Accept: 'text/html' } });
      if (!res.ok || res.redirected) throw new Error(String(res.status));
      const next = new DOMParser().parseFromString(await res.text(), 'text/html');
      const now = next.getElementById(list.id);
      if (!now) throw new Error('no list');
      const fresh = [...now.children].filter((li) => li.id && !document.getElementById(li.id));
      // What is on the screen stays where it is: the new ones go above it.
      const above = document.documentElement.scrollHeight;
      for (const li of fresh.reverse()) list.prepend(document.adoptNode(li));
      // A conversation that goes on has a new bar above its new changes.
      for (const bar of list.querySelectorAll('.turn')) {
        if (next.getElementById(`c${bar.id.slice(1)}`) && !next.getElementById(bar.id)) bar.remove();
      }
      part(next, 'reviews');
      const grown = document.documentElement.scrollHeight - above;
      if (list.getBoundingClientRect().top < 0) scrollBy(0, grown);
      seen.clear();
      status.textContent = fresh.length ? 'The list is up to date.' : 'Nothing else is new.';
      const first = fresh.findLast((li) => li.querySelector('.what a'))?.querySelector('.what a');
      show.hidden = true;
      if (first) first.focus({ preventScroll: false });
    } catch {
      location.assign(show.href);
    } finally {
      show.removeAttribute('aria-disabled');
    }
  });
})();
