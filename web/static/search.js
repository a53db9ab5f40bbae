// Shows results while the person types, and moves among them with the arrow keys. Without it,
// the form and the links do the same.
(() => {
  'use strict';
  const form = document.getElementById('search');
  if (!form) return;
  const input = form.elements.q;
  let asked = 0;
  let stop = new AbortController();
  let last = input.value.trim();

  const ask = async () => {
    const q = input.value.trim();
    const mine = ++asked;
    await new Promise((done) => { setTimeout(done, 150); });
    if (mine !== asked || q === last) return;
    stop.abort();
    stop = new AbortController();
    const url = new URL(form.action);
    if (q) url.searchParams.set('q', q);
    try {
      const answer = await fetch(url, { redirect: 'error', signal: stop.signal });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const now = next.getElementById('results');
      if (mine !== asked || !now) return;
      last = q;
      document.getElementById('results').replaceWith(document.adoptNode(now));
      document.title = next.title;
      const title = next.querySelector('h1');
      if (title) document.querySelector('h1').textContent = title.textContent;
      history.replaceState(null, '', url);
    } catch { /* Enter still submits the form */ }
  };

  const links = () => [...document.querySelectorAll('#results .found h2 a')];
  input.addEventListener('input', ask);
  document.addEventListener('keydown', (e) => {
    if (e.isComposing || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey || document.querySelector('dialog[open]')) return;
    const all = links();
    const at = all.indexOf(document.activeElement);
    if (at < 0 && document.activeElement !== input) return;
    if (e.key === 'ArrowDown') all[Math.min(at + 1, all.length - 1)]?.focus();
    else if (e.key === 'ArrowUp' && at >= 0) (all[at - 1] ?? input).focus();
    else if (e.key === 'Escape' && at >= 0) input.focus();
    else return;
    e.preventDefault();
  });
})();
