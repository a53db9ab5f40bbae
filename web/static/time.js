// Writes the times of a page, which are UTC, for the zone and the place of whoever
// reads it. The exact time in UTC stays in the title.
(() => {
  'use strict';
  const form = (dateStyle, timeStyle) => new Intl.DateTimeFormat(undefined, { dateStyle, timeStyle });
  const forms = {
    whole: form('medium', 'short'), day: form('medium'), clock: form(undefined, 'short'),
    date: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' }),
  };
  const { locale } = forms.whole.resolvedOptions();

  const write = (e) => {
    const at = new Date(e.dateTime);
    const utc = `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
    if (e.dataset.as === 'ago') {
      e.title = `${forms.whole.format(at)} (${utc})`;
    } else {
      if (e.dataset.as !== 'date') e.title = utc;
      e.textContent = forms[e.dataset.as].format(at);
      e.lang = locale;
      e.dir = 'auto';
    }
    delete e.dataset.as; // it is written
  };

  // The sections of a history are days, and these begin elsewhere at another time.
  const days = (root) => {
    const old = [...root.querySelectorAll('section.day')];
    let section;
    for (const li of old.flatMap((s) => [...s.querySelector('ul').children])) {
      const day = forms.day.format(new Date(li.querySelector('time').dateTime));
      if (section?.querySelector('h2').textContent !== day) {
        section = old[0].cloneNode(true);
        const heading = section.querySelector('h2');
        heading.textContent = day;
        heading.lang = locale;
        heading.dir = 'auto';
        section.querySelector('ul').replaceChildren();
        old[0].before(section);
      }
      section.querySelector('ul').append(li);
    }
    for (const s of old) s.remove();
  };

  const all = (root) => {
    for (const e of root.querySelectorAll('time[data-as]')) write(e);
  };
  days(document);
  all(document);
  new MutationObserver((changes) => {
    for (const c of changes) {
      for (const n of c.addedNodes) if (n.nodeType === Node.ELEMENT_NODE) all(n.parentNode ?? n);
    }
  }).observe(document.body, { childList: true, subtree: true });

  // A field for a time is UTC; beside it stands what that is here.
  for (const echo of document.querySelectorAll('[data-local]')) {
    const field = document.getElementById(echo.dataset.local);
    const show = () => {
      const at = new Date(`${field.value}Z`);
      echo.textContent = Number.isNaN(at.valueOf()) ? '' : ` That is ${forms.whole.format(at)} where you are.`;
    };
    field.addEventListener('input', show);
    show();
  }
})();
