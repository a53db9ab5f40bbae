// Shows what a source does while its page is open: the progress of its sync, and of
// forms that take a while, which it also can end. Without it, the browser waits for
// each page, and a link shows the progress anew.
(() => {
  'use strict';

  // replace shows a region of the page as it is now. The focus stays where it is.
  const replace = (next, id) => {
    const [old, now] = [document.getElementById(id), next.getElementById(id)];
    if (!old || !now) return;
    const focused = old.contains(document.activeElement);
    old.replaceWith(document.adoptNode(now));
    if (focused) document.getElementById(id).focus({ preventScroll: true });
  };

  const read = async (url) => {
    const res = await fetch(url, { credentials: 'same-origin', headers: { Accept: 'text/html' } });
    if (!res.ok || res.redirected) throw new Error(String(res.status));
    return new DOMParser().parseFromString(await res.text(), 'text/html');
  };

  const follow = () => {
    const state = document.querySelector('[data-follow]');
    if (!state || !window.EventSource) return;
    document.querySelector('.reload')?.remove();
    const events = new EventSource(state.dataset.follow);
    let asked = Promise.resolve();
    events.addEventListener('progress', (e) => {
      const { text, done, total } = JSON.parse(e.data);
      const bar = document.getElementById('sync-progress');
      if (!bar) return;
      if (total > 0) [bar.max, bar.value] = [total, Math.min(done, total)];
      else bar.removeAttribute('value');
      document.getElementById('sync-step').textContent = text;
    });
    events.addEventListener('state', (e) => {
      document.getElementById('source-said').textContent = JSON.parse(e.data);
      document.querySelector('main > :is(.note, .toast)')?.remove(); // what the last form has started is over
      asked = asked.then(() => read(location.pathname)).then((next) => {
        for (const id of ['source-acts', 'source-state', 'source-origin', 'source-runs']) replace(next, id);
        document.querySelector('.reload')?.remove();
      }, () => location.reload());
    });
    addEventListener('pagehide', () => events.close());
  };
  follow();

  // show shows a whole page that a form has led to.
  const show = (html) => {
    const next = new DOMParser().parseFromString(html, 'text/html');
    document.title = next.title;
    document.querySelector('main').replaceWith(document.adoptNode(next.querySelector('main')));
    (document.querySelector('main [autofocus]') ?? document.querySelector('main')).focus();
    scrollTo(0, 0);
    document.dispatchEvent(new Event('newpage')); // shell.js moves a problem to its field
  };

  // parts yields the events of an answer, each as [name, data].
  async function* parts(body) {
    let text = '';
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const event = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end));
        text = text.slice(end + 2);
        if (event) yield [event[1], JSON.parse(event[2])];
      }
    }
  }

  document.addEventListener('submit', async (e) => {
    const form = e.target;
    const button = e.submitter;
    // In a form with several buttons, only the one that leads elsewhere takes long.
    if (form.dataset.work === undefined || form.dataset.work !== '' && !button?.hasAttribute('formaction')) return;
    e.preventDefault();
    // The menu of a source has no box of its own: the state of the source shows the work.
    const box = form.querySelector('[data-working]') ?? document.querySelector('[data-working]');
    if (!box.hidden) return;
    const body = new URLSearchParams(new FormData(form, button));
    const menu = button?.closest('details.menu');
    const acts = box.parentElement.querySelectorAll(':scope > :is(.acts, .actions)');
    const work = (on) => {
      box.hidden = !on;
      for (const e of acts) e.hidden = on;
      if (button) button.disabled = on;
      if (menu && on) menu.open = false;
    };
    // The last problem is over.
    document.getElementById('problem')?.remove();
    for (const e of form.querySelectorAll('[aria-invalid]')) e.removeAttribute('aria-invalid');
    box.parentElement.querySelector('.stopped')?.remove();
    const said = box.querySelector('[role="status"]');
    const stop = new AbortController();
    const cancel = box.querySelector('[data-cancel]');
    cancel.onclick = () => stop.abort();
    work(true);
    said.textContent = 'Looking at the address…';
    cancel.focus();
    box.scrollIntoView({ block: 'nearest' });
    try {
      const res = await fetch(button?.getAttribute('formaction') ?? form.action, {
        method: 'POST', body, credentials: 'same-origin', headers: { Accept: 'text/event-stream' }, signal: stop.signal,
      });
      if (!res.headers.get('Content-Type')?.startsWith('text/event-stream')) {
        show(await res.text());
        return;
      }
      for await (const [name, data] of parts(res.body)) {
        if (name === 'step') said.textContent = data;
        else if (name === 'go') location.assign(data);
        else show(data);
        if (name === 'page') return;
      }
    } catch {
      work(false);
      const note = document.createElement('p');
      note.className = 'stopped hint';
      note.setAttribute('role', 'status');
      box.before(note);
      note.textContent = stop.signal.aborted ? 'Canceled. Nothing was changed.' : 'The server did not answer. Please try again.';
      (menu?.querySelector('summary') ?? button)?.focus();
    }
  });
})();
