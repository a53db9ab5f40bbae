// The form of a text: it saves with Ctrl+S, shows a preview beside the text, takes a whole
// version of a conflict, and asks before unsaved text is left. The browser has its own words
// for that.
(() => {
  'use strict';
  for (const form of document.querySelectorAll('form[data-guard]')) {
    const fields = [...form.querySelectorAll('textarea, input:not([type="hidden"])')];
    const begin = fields.map((f) => f.value);
    let sent = false;
    const unsaved = () => !sent && ('unsaved' in form.dataset || fields.some((f, i) => f.value !== begin[i]));
    form.addEventListener('submit', () => { sent = true; });
    // A page that comes back from the browser's memory is as it was left.
    window.addEventListener('pageshow', () => { sent = false; });
    window.addEventListener('beforeunload', (event) => {
      if (!unsaved()) return;
      event.preventDefault();
      event.returnValue = ''; // browsers of before 2024
    });
  }

  const form = document.querySelector('form#editing');
  const area = form?.querySelector('textarea#text');
  if (!area) return;
  const save = form.querySelector('button[value="save"]');
  document.addEventListener('keydown', (e) => {
    if (!(e.ctrlKey || e.metaKey) || e.altKey || e.shiftKey || e.key.toLowerCase() !== 's') return;
    e.preventDefault();
    if (!e.repeat) form.requestSubmit(save);
  });

  for (const p of document.querySelectorAll('.uses')) p.hidden = false;
  for (const button of document.querySelectorAll('button[data-use]')) {
    button.addEventListener('click', () => {
      area.value = document.getElementById(button.dataset.use).value;
      area.dispatchEvent(new Event('input', { bubbles: true }));
    });
  }

  // The server writes the preview, as it writes pages.
  const look = form.querySelector('button[value="preview"]');
  const panes = form.querySelector('.panes');
  let asked;
  let timer;
  const show = async () => {
    clearTimeout(timer);
    asked?.abort();
    asked = new AbortController();
    const data = new FormData(form);
    data.set('act', 'preview');
    try {
      const answer = await fetch(form.action, { method: 'POST', body: data, redirect: 'error', signal: asked.signal });
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const preview = page.querySelector('main section.preview');
      const old = panes.querySelector('section.preview');
      if (!preview) throw new Error('there is no preview');
      const at = old?.scrollTop ?? 0;
      if (old) old.replaceWith(preview);
      else {
        panes.append(preview);
        // It may be below the text, and behind the buttons.
        preview.scrollIntoView({ block: preview.getBoundingClientRect().bottom > innerHeight ? 'start' : 'nearest' });
      }
      preview.scrollTop = at;
    } catch (e) {
      if (e.name === 'AbortError') return;
      form.dataset.plain = ''; // the page says what is wrong
      form.requestSubmit(look);
    }
  };
  look.setAttribute('aria-pressed', 'false');
  look.addEventListener('click', (e) => {
    if (form.dataset.plain !== undefined) return;
    e.preventDefault();
    document.querySelector('main > section.preview')?.remove(); // of a page from before
    const on = look.getAttribute('aria-pressed') !== 'true';
    look.setAttribute('aria-pressed', String(on));
    panes.classList.toggle('beside', on);
    if (on) show();
    else panes.querySelector('section.preview')?.remove();
  });
  area.addEventListener('input', () => {
    if (look.getAttribute('aria-pressed') !== 'true') return;
    clearTimeout(timer);
    timer = setTimeout(show, 300);
  });
})();
