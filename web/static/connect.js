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
  const address = '/connect/status?' + new URLSearchParams({ since: waits.dataset.since, client: waits.dataset.client });
  // The client that the page is about has called: of one client, that is all there is
  // to wait for.
  let ticked = !live;
  let shown = '';
  let listed = '';
  let failed = 0;

  const element = (name, text) => {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    return e;
  };

  function line(c) {
    const li = element('li');
    if (c.called && !c.other) li.className = 'done';
    const tick = element('span', c.other ? '•' : c.called ? '✓' : '…');
    tick.className = 'tick';
    tick.setAttribute('aria-hidden', 'true');
    const words = element('span');
    const name = element('strong');
    name.append(element('bdi', c.name));
    words.append(name);
    if (c.called) {
      words.append(' has called');
      if (c.key) words.append(' with the key ', element('bdi', c.key));
    } else {
      words.append(' is connected to ', element('bdi', c.space));
    }
    if (c.other) {
      words.append(`, but ${waits.dataset.name} ${c.called ? 'has' : 'is'} not yet.`);
    } else {
      words.append(c.called ? '. It works.' : '. Ask the client something, so that it calls.');
    }
    li.append(tick, words);
    return li;
  }

  function show(clients) {
    const now = JSON.stringify(clients.map((c) => [c.name, c.key, c.space, c.other, c.called]));
    if (clients.length === 0 || now === shown) return;
    shown = now;
    const list = element('ul');
    list.className = 'ticks';
    list.append(...clients.map(line));
    arrivals.replaceChildren(list);
    ticked = clients.some((c) => c.called && !c.other);
    go.hidden = !clients.some((c) => c.called);
    go.querySelector('a').classList.toggle('second', !ticked);
    if (live) live.hidden = ticked;
  }

  // refuse lists the refused requests, for a person whose client does not arrive.
  function refuse(list) {
    const box = waits.querySelector('[data-refused]');
    box.hidden = ticked || list.length === 0;
    const none = waits.querySelector('[data-none]');
    if (none) none.hidden = !box.hidden;
    box.querySelector('[data-refused-key]').hidden = !list.some((r) => r.key);
    const note = document.querySelector('[data-refused-note]');
    if (note) note.hidden = box.hidden || list.every((r) => r.signIn);
    // What a person has opened stays open.
    if (JSON.stringify(list) === listed) return;
    listed = JSON.stringify(list);
    box.querySelector('[data-refused-list]').replaceChildren(...list.map((r) => {
      const li = element('li');
      const line = element('p');
      const name = element('strong');
      name.append(element('bdi', r.name?.replace('/', ' ') || 'A client without a name'));
      const why = () => (r.why ? [': ', element('bdi', r.why)] : ['.']);
      if (r.signIn) {
        line.append(name, ' is not signed in yet. The client should open the sign-in page now.');
      } else {
        line.append(name, ' was refused', ...why());
        li.className = 'problem';
      }
      const more = element('details');
      const said = element('p');
      said.append('The server answered ', element('code', r.asked), ` with the status ${r.status}`, ...why());
      more.append(element('summary', 'Details'), said);
      li.append(line, more);
      return li;
    }));
  }

  async function look() {
    if (ticked && waits.dataset.client) return;
    if (Date.now() > until || failed > 5) {
      if (ticked || !live) return;
      live.hidden = true;
      again.hidden = false;
      return;
    }
    if (document.visibilityState === 'visible') {
      try {
        const answer = await fetch(address, { credentials: 'same-origin', redirect: 'error', headers: { Accept: 'application/json' } });
        if (!answer.ok) throw new Error(answer.status);
        const now = await answer.json();
        show(now.clients);
        refuse(now.refused || []);
        failed = 0;
      } catch {
        failed++;
      }
    }
    setTimeout(look, every);
  }

  if (live) {
    live.hidden = false;
    again.hidden = true;
  }
  setTimeout(look, every);
})();
