// Asks before a page with unsaved text is left. The browser has its own words for
// that.
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
})();
