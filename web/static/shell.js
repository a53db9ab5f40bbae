// The palette, which goes to a page or a file or searches, and menus that close when
// one leaves them.
(() => {
  'use strict';
  // Only the frame is read: what is inside <main> may be somebody else's text.
  const side = document.querySelector('body > header.side');
  const link = side?.querySelector('a.jump');

  document.addEventListener('click', (e) => {
    const asks = e.target.closest('[popovertarget]');
    for (const d of document.querySelectorAll('details.menu[open]')) {
      if (d.contains(e.target) && !asks) continue;
      d.open = false;
      if (!d.contains(asks)) continue;
      // The dialog cannot give the focus back to a button in a closed menu.
      const dialog = document.getElementById(asks.getAttribute('popovertarget'));
      const back = (t) => {
        if (t.newState !== 'closed') return;
        dialog.removeEventListener('toggle', back);
        d.querySelector('summary').focus();
      };
      dialog.addEventListener('toggle', back);
    }
  });
  document.addEventListener('keydown', (e) => {
    const d = e.key === 'Escape' && document.querySelector('details.menu[open]');
    if (!d) return;
    d.open = false;
    d.querySelector('summary').focus();
  });
  // The tab that is shown is visible, however many tabs are before it.
  const tab = document.querySelector('.tabs [aria-current]');
  const tabs = tab?.closest('.tabs');
  if (tabs) {
    new ResizeObserver(() => {
      tabs.scrollLeft = tab.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
    }).observe(tabs);
  }
  // A problem of one field stands at the field, which has the focus. The event says that a
  // script has put another page into <main>.
  const moveProblem = () => {
    const problem = document.getElementById('problem');
    const wrong = problem && document.querySelector('main .field :is(input, select, textarea)[aria-invalid="true"]');
    if (!wrong?.checkVisibility()) return; // such as a text whose editor has replaced the field
    problem.classList.add('at-field');
    (wrong.closest('.pick') ?? wrong).after(problem);
    wrong.focus();
  };
  moveProblem();
  document.addEventListener('newpage', moveProblem);
  if (!link || !window.HTMLDialogElement) return;

  const make = (name, attributes, ...children) => {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };
  const input = make('input', {
    type: 'text', enterkeyhint: 'go', role: 'combobox', autocomplete: 'off', spellcheck: 'false', maxlength: '1000', placeholder: 'Search or jump to…',
    'aria-label': 'Search or jump to', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-autocomplete': 'list',
  });
  const list = make('ul', { id: 'palette-list', role: 'listbox', 'aria-label': 'Results' });
  const status = make('p', { class: 'unseen', role: 'status' });
  const dialog = make('dialog', { class: 'palette', 'aria-label': 'Search or jump to' }, input, list, status);
  document.body.append(dialog);

  // The mark of a space is a letter, which is no part of its name.
  const textOf = (a) => {
    const copy = a.cloneNode(true);
    for (const e of copy.querySelectorAll('[aria-hidden="true"]')) e.remove();
    return copy.textContent.trim().replace(/\s+/g, ' ');
  };
  const places = [...side.querySelectorAll('nav a, #nav-person a, #nav-spaces a, #nav-jumps a')].map((a) => ({
    name: textOf(a), url: a.href, icon: a.querySelector('svg'), hint: a.closest('#nav-spaces') ? 'Space' : 'Page',
  }));
  let shown = [];
  let at = 0;
  let asked = 0;
  let files = [];

  const mark = (n) => {
    at = n;
    [...list.children].forEach((li, i) => li.setAttribute('aria-selected', String(i === at)));
    const li = list.children[at];
    if (li) {
      input.setAttribute('aria-activedescendant', li.id);
      li.scrollIntoView({ block: 'nearest' });
    } else {
      input.removeAttribute('aria-activedescendant');
    }
  };

  const show = () => {
    const q = input.value.trim();
    const low = q.toLowerCase();
    const pages = places.filter((p) => p.name.toLowerCase().includes(low));
    shown = q ? [...pages.slice(0, 4), ...files, { name: `Search for “${q}”`, url: `${link.href}?q=${encodeURIComponent(q)}`, icon: link.querySelector('svg'), hint: 'Search' }] : pages;
    list.replaceChildren(...shown.map((s, i) => {
      const li = make('li', { id: `palette-${i}`, role: 'option' }, make('bdi', {}, s.name), make('span', { class: 'hint' }, s.hint));
      if (s.icon) li.prepend(s.icon.cloneNode(true));
      return li;
    }));
    status.textContent = `${shown.length} ${shown.length === 1 ? 'result' : 'results'}`;
    mark(0);
  };

  const ask = async () => {
    const q = input.value.trim();
    const mine = ++asked;
    files = [];
    show();
    if (!q) return;
    try {
      await new Promise((done) => { setTimeout(done, 80); });
      if (mine !== asked) return;
      const answer = await fetch(`${link.dataset.jump}?q=${encodeURIComponent(q)}`, { redirect: 'error' });
      const { files: found } = await answer.json();
      if (mine !== asked || !found?.length) return;
      files = found.map((f) => ({ name: f.path, url: f.url, icon: places.find((p) => p.name === 'Files')?.icon, hint: 'File' }));
      show();
    } catch { /* the pages and the search are left */ }
  };

  const open = () => {
    if (dialog.open) return;
    input.value = '';
    files = [];
    show();
    dialog.showModal();
    input.focus();
  };
  const go = (n) => {
    if (!shown[n]) return;
    location.assign(shown[n].url);
    dialog.close();
  };

  input.addEventListener('input', ask);
  input.addEventListener('keydown', (e) => {
    if (e.isComposing) return;
    const n = shown.length;
    if (e.key === 'ArrowDown') mark((at + 1) % n);
    else if (e.key === 'ArrowUp') mark((at + n - 1) % n);
    else if (e.key === 'Enter') go(at);
    else return;
    e.preventDefault();
  });
  list.addEventListener('click', (e) => go([...list.children].indexOf(e.target.closest('li'))));
  dialog.addEventListener('click', (e) => { if (e.target === dialog) dialog.close(); });
  link.addEventListener('click', (e) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    open();
  });
  document.addEventListener('keydown', (e) => {
    const writes = e.target instanceof Element && e.target.closest('input, textarea, select, [contenteditable]');
    if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k' || e.key === '/' && !writes && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      open();
    }
  });
})();
