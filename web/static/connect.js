// The page on which somebody connects a client asks whether it has arrived.
// Without this script a link does.
'use strict';

(() => {
  const every = 2000;
  // Who left the page open has gone.
  const until = Date.now() + 30 * 60 * 1000;
  const waits = document.querySelector('[data-since]');
  if (!waits) return;
  const arrivals = waits.querySelector('[data-arrivals]');
  const live = waits.querySelector('[data-live]');
  const again = waits.querySelector('[data-again]');
  const go = waits.querySelector('[data-go]');
  const address = '/connect/status?since=' + encodeURIComponent(waits.dataset.since);
  let shown = '';
  let failed = 0;

  const element = (name, text) => {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    return e;
  };

  function line(c) {
    const li = element('li');
    if (c.called) li.className = 'done';
    const tick = element('span', c.called ? '✓' : '…');
    tick.className = 'tick';
    tick.setAttribute('aria-hidden', 'true');
    const words = element('span');
    const name = element('strong');
    name.append(element('bdi', c.name));
    words.append(name);
    if (c.called) {
      words.append(' has called. It works.');
    } else {
      words.append(' is connected to ', element('bdi', c.space), '. Now ask it something, so that it calls.');
    }
    li.append(tick, words);
    return li;
  }

  function show(clients) {
    const now = JSON.stringify(clients.map((c) => [c.name, c.space, c.called]));
    if (clients.length === 0 || now === shown) return;
    shown = now;
    const list = element('ul');
    list.className = 'ticks';
    list.append(...clients.map(line));
    arrivals.replaceChildren(list);
    if (go) go.hidden = !clients.some((c) => c.called);
  }

  async function look() {
    if (Date.now() > until || failed > 5) {
      live.hidden = true;
      again.hidden = false;
      return;
    }
    if (document.visibilityState === 'visible') {
      try {
        const answer = await fetch(address, { credentials: 'same-origin', redirect: 'error', headers: { Accept: 'application/json' } });
        if (!answer.ok) throw new Error(answer.status);
        show((await answer.json()).clients);
        failed = 0;
      } catch {
        failed++;
      }
    }
    setTimeout(look, every);
  }

  live.hidden = false;
  again.hidden = true;
  setTimeout(look, every);
})();
