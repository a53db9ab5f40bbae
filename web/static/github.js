// The form that GitHub makes an App from goes on by itself.
'use strict';

(() => {
  const form = document.querySelector('form[data-go-on]');
  // Who comes back by the browser's button shall not be sent on again.
  const [entry] = performance.getEntriesByType('navigation');
  if (form && entry?.type === 'navigate') form.requestSubmit();
})();
