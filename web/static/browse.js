// Opens directories of the tree in place, and uploads files that are dropped on a
// directory. Names may be somebody else's text, so they are only ever set as text.
(() => {
  'use strict';
  const tree = document.querySelector('nav.filetree[data-load]');
  if (tree) {
    const { load, files, query } = tree.dataset;
    const [dirPart, filePart, morePart] = [...tree.querySelector('template').content.children];
    const chevron = tree.querySelector('template').content.querySelector('details');

    const item = (n) => {
      const li = (n.more ? morePart : n.dir ? dirPart : filePart).cloneNode(true);
      li.querySelector('details')?.remove();
      const a = li.querySelector('a');
      a.href = n.url;
      if (n.more) a.textContent = `${n.more.toLocaleString('en')} more`;
      else a.querySelector('bdi').textContent = n.name;
      return li;
    };
    const openable = (root) => {
      for (const li of root.querySelectorAll('li.dir')) {
        if (li.querySelector(':scope > details')) continue;
        const details = chevron.cloneNode(true);
        const a = li.querySelector('a');
        details.querySelector('summary').setAttribute('aria-label', `What is in ${a.textContent}`);
        details.addEventListener('toggle', async () => {
          if (!details.open || details.querySelector('ul')) return;
          const path = new URL(a.href).pathname.slice(files.length).replace(/\/$/, '');
          try {
            const answer = await fetch(load + path + query, { redirect: 'error' });
            const { names } = await answer.json();
            const ul = document.createElement('ul');
            ul.className = 'nodes';
            ul.append(...names.map(item));
            openable(ul);
            details.append(ul);
          } catch {
            location.assign(a.href); // its page has the names
          }
        });
        li.append(details);
      }
    };
    openable(tree);
    // The arrows go through the tree, as in programs for files.
    tree.addEventListener('keydown', (e) => {
      const li = e.target.closest?.('li');
      if (!li || e.ctrlKey || e.metaKey || e.altKey) return;
      const links = [...tree.querySelectorAll('li > a')].filter((a) => a.checkVisibility());
      const a = li.querySelector('a');
      const details = li.querySelector(':scope > details');
      const go = (to) => to?.focus();
      switch (e.key) {
        case 'ArrowDown': go(links[links.indexOf(a) + 1]); break;
        case 'ArrowUp': go(links[links.indexOf(a) - 1]); break;
        case 'ArrowRight':
          if (details?.open) go(details.querySelector('li > a'));
          else if (details) details.open = true;
          break;
        case 'ArrowLeft':
          if (details?.open) { details.open = false; go(a); } else go(li.parentElement.closest('li')?.querySelector('a'));
          break;
        default: return;
      }
      e.preventDefault();
    });
    // Only the tree scrolls to the page that is shown.
    const here = tree.querySelector('[aria-current]');
    const box = tree.querySelector('.inside');
    if (here && box) box.scrollTop += here.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
  }

  const zone = document.querySelector('form.dropzone');
  if (zone) {
    let depth = 0;
    const carries = (e) => e.dataTransfer?.types.includes('Files');
    const show = (on) => { zone.hidden = !on; };
    document.addEventListener('dragenter', (e) => { if (carries(e)) { depth += 1; show(true); } });
    document.addEventListener('dragleave', (e) => { if (carries(e) && (depth -= 1) <= 0) { depth = 0; show(false); } });
    document.addEventListener('dragover', (e) => { if (carries(e)) e.preventDefault(); });
    document.addEventListener('drop', (e) => {
      if (!carries(e)) return;
      e.preventDefault();
      depth = 0;
      if (!e.dataTransfer.files.length) { show(false); return; }
      // The page Import takes folders, with their subfolders.
      if ([...e.dataTransfer.items].some((i) => i.webkitGetAsEntry?.()?.isDirectory)) { location.assign(zone.dataset.folders); return; }
      zone.elements.files.files = e.dataTransfer.files;
      zone.querySelector('.ready').hidden = true;
      zone.querySelector('.busy').hidden = false;
      zone.requestSubmit();
    });
    window.addEventListener('pageshow', () => show(false));
  }

  // The contents list marks the section that is read.
  const links = new Map([...document.querySelectorAll('nav.contents a')].map((a) => [decodeURIComponent(a.hash.slice(1)), a]));
  const headings = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  if (headings.length) {
    let waits = false;
    const mark = () => {
      waits = false;
      const at = headings.findLast((h) => h.getBoundingClientRect().top < 120) ?? headings[0];
      for (const [id, a] of links) {
        if (id === at.id) a.setAttribute('aria-current', 'location');
        else a.removeAttribute('aria-current');
      }
    };
    document.addEventListener('scroll', () => { if (!waits) { waits = true; requestAnimationFrame(mark); } }, { passive: true });
    mark();
    for (const a of links.values()) a.addEventListener('click', () => document.getElementById('files-contents').hidePopover?.());
  }
})();
