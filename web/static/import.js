// Sends the forms with files of the page Import, shows how far they are, and takes a folder that
// is dropped. Without this script the browser sends the forms.
(() => {
  'use strict';
  // The files of the folder, with their paths, and the last form: both outlive a wrong answer.
  let chosen = [];
  let hidden = 0;
  let last;
  let drops = 0;

  const number = (n) => n.toLocaleString('en');
  // A unit is 1024 of the next smaller one, as in the limits of the page.
  const size = (n) => (n < 1024 ? `${n} bytes` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} kB` : `${(n / (1 << 20)).toFixed(1)} MB`);
  const files = (n, word = 'file') => `${number(n)} ${n === 1 ? word : `${word}s`}`;
  const total = () => chosen.reduce((sum, c) => sum + c.file.size, 0);

  // choose keeps the files that are not hidden.
  function choose(list, skipped) {
    chosen = list.filter((c) => !`/${c.path}`.includes('/.'));
    hidden = skipped + list.length - chosen.length;
  }

  // walk adds the files of a dropped entry to a list, and returns how many it left out.
  async function walk(entry, before, list, most) {
    if (entry.name.startsWith('.')) return 1;
    const path = before + entry.name;
    if (entry.isFile) {
      list.push({ file: await new Promise((ok, no) => { entry.file(ok, no); }), path });
      return 0;
    }
    const reader = entry.createReader();
    let skipped = 0;
    for (;;) {
      const some = await new Promise((ok, no) => { reader.readEntries(ok, no); });
      if (some.length === 0) return skipped;
      for (const e of some) {
        if (list.length > most) return skipped; // more are refused anyway
        skipped += await walk(e, `${path}/`, list, most);
      }
    }
  }

  // folder lets a person choose or drop a folder.
  function folder(form, input) {
    const said = form.querySelector('.chosen');
    const most = Number(form.dataset.most);
    const bytes = Number(form.dataset.bytes);
    const nothing = said.textContent;
    const show = (problem) => {
      const sum = total();
      // Files that lie in no folder have no name in front of their count.
      const folders = chosen.every((c) => c.path.includes('/')) ? [...new Set(chosen.map((c) => c.path.split('/')[0]))] : [];
      const names = folders.length > 3 ? `${folders.slice(0, 3).join(', ')} and ${number(folders.length - 3)} more` : folders.join(', ');
      let text = chosen.length > 0 ? `${names && `${names}: `}${files(chosen.length)}, ${size(sum)}` : nothing;
      if (hidden > 0) text += ` (${files(hidden, 'hidden file')} left out)`;
      if (chosen.length > most) problem = `The folder has more than ${files(most)}. Choose one of its subfolders.`;
      else if (sum > bytes) problem = `The folder has ${size(sum)}, more than can be imported at once. Choose one of its subfolders.`;
      else if (chosen.length === 0 && hidden > 0) problem = 'The folder has only hidden files, which are left out.';
      input.required = chosen.length === 0;
      input.setCustomValidity(problem ?? '');
      said.textContent = problem ?? text;
      said.classList.toggle('has', chosen.length > 0);
      said.classList.toggle('wrong', Boolean(problem));
    };
    input.addEventListener('change', () => {
      choose([...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })), 0);
      show();
    });
    const carries = (e) => e.dataTransfer?.types.includes('Files');
    form.addEventListener('dragover', (e) => {
      if (!carries(e)) return;
      e.preventDefault();
      form.classList.add('over');
    });
    form.addEventListener('dragleave', (e) => { if (!form.contains(e.relatedTarget)) form.classList.remove('over'); });
    form.addEventListener('drop', async (e) => {
      if (!carries(e)) return;
      e.preventDefault();
      form.classList.remove('over');
      const entries = [...e.dataTransfer.items].map((i) => i.webkitGetAsEntry?.()).filter(Boolean);
      const plain = [...e.dataTransfer.files];
      const list = [];
      const buttons = form.querySelectorAll('button');
      const drop = ++drops;
      let skipped = 0;
      let problem;
      for (const b of buttons) b.disabled = true;
      try {
        for (const entry of entries) skipped += await walk(entry, '', list, most);
        if (entries.length === 0) list.push(...plain.map((file) => ({ file, path: file.name })));
      } catch {
        problem = 'The folder could not be read. Choose it with the button instead.';
        list.length = 0;
      }
      if (drop !== drops) return; // another folder was dropped meanwhile
      for (const b of buttons) b.disabled = false;
      input.value = '';
      choose(list, skipped);
      show(problem);
    });
    if (chosen.length > 0) show();
  }

  // named shows the name of the chosen file.
  function named(form, input) {
    const said = form.querySelector('.chosen');
    const nothing = said.textContent;
    input.addEventListener('change', () => {
      const [file] = input.files;
      said.textContent = file ? `${file.name}, ${size(file.size)}` : nothing;
      said.classList.toggle('has', Boolean(file));
    });
  }

  // post sends a form, and shows the main part of the answer in place of the present one.
  function post(url, data, box) {
    const bar = box.querySelector('progress');
    const said = box.querySelector('[data-uploading] p');
    const buttons = box.querySelectorAll('button');
    const busy = (on) => {
      box.setAttribute('aria-busy', String(on));
      for (const b of buttons) b.disabled = on;
    };
    busy(true);
    bar.hidden = false;
    bar.value = 0;
    said.textContent = 'Uploading. Keep this page open.';
    box.querySelector('[data-uploading]').hidden = false;
    const request = new XMLHttpRequest();
    request.open('POST', url);
    request.responseType = 'document';
    request.upload.addEventListener('progress', (e) => { if (e.lengthComputable) bar.value = 100 * e.loaded / e.total; });
    let sent = false;
    request.upload.addEventListener('load', () => {
      sent = true;
      bar.removeAttribute('value');
      said.textContent = 'Saving…';
    });
    request.addEventListener('error', () => {
      busy(false);
      bar.hidden = true;
      said.textContent = sent
        ? 'The connection broke before the answer. Look at the files of the space before you try again.'
        : 'The files did not arrive, and nothing was imported. Check the connection and that the files still exist, and try again.';
    });
    request.addEventListener('load', () => {
      const main = request.response?.querySelector('main');
      if (!main || request.responseURL !== url) {
        location.assign(request.responseURL || location.href);
        return;
      }
      busy(false);
      if (request.status >= 400 && !main.querySelector('form[data-upload]')) { // an error page; the form stays
        bar.hidden = true;
        said.textContent = main.querySelector('.lead')?.textContent ?? 'Nothing was imported. Try again.';
        return;
      }
      box.querySelector('[data-uploading]').hidden = true;
      last = { url, data };
      const before = { main: document.querySelector('main'), title: document.title };
      document.title = request.response.title;
      const now = document.adoptNode(main);
      before.main.replaceWith(now);
      now.querySelector('[data-back]')?.addEventListener('click', (e) => {
        e.preventDefault();
        now.replaceWith(before.main);
        document.title = before.title;
        before.main.focus();
      });
      scrollTo(0, 0);
      (now.querySelector('#problem') ?? now).focus();
      document.dispatchEvent(new Event('newpage')); // shell.js moves a problem to its field
      begin(now);
    });
    request.send(data);
  }

  function begin(main) {
    for (const form of main.querySelectorAll('form[data-upload]')) {
      const input = form.querySelector('input[webkitdirectory]');
      if (input) folder(form, input);
      else named(form, form.querySelector('input[type="file"]'));
      form.addEventListener('submit', (e) => {
        e.preventDefault();
        const data = new FormData(form);
        if (e.submitter?.name) data.set(e.submitter.name, e.submitter.value);
        if (input) {
          data.delete(input.name);
          data.set('hidden', hidden);
          for (const c of chosen) data.append(input.name, c.file, c.path);
        }
        post(form.action, data, form);
      });
    }
    // After a look at what an import would do, nothing needs to be chosen again.
    const again = main.querySelector('[data-again]');
    if (!again || !last) return;
    const { url, data } = last;
    main.querySelector('[data-choose]').hidden = true;
    again.hidden = false;
    again.addEventListener('click', () => {
      data.set('act', 'import');
      post(url, data, again.closest('[data-result]'));
    });
  }

  // A link to a form opens its part of the page, in browsers that do not do so themselves.
  const target = location.hash && document.getElementById(location.hash.slice(1))?.closest('details');
  if (target) target.open = true;
  begin(document.querySelector('main'));
})();
