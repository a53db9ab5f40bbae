// What pages cannot do without a script: passkeys, a button that copies, and a
// page of sign-in that goes on when the person signed in elsewhere.
// Everything else works without it.
'use strict';

(() => {
  const bytes = (s) => Uint8Array.from(atob(s.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
  const text = (b) => btoa(String.fromCharCode(...new Uint8Array(b))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');

  // post sends JSON to this server. The token of the session's forms goes along
  // where somebody is signed in.
  async function post(path, body, token) {
    const headers = { 'Content-Type': 'application/json' };
    if (token) headers['X-Satchel-Form'] = token;
    const answer = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body), credentials: 'same-origin', redirect: 'error' });
    const data = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(data.error || 'That did not work. Please try again.'), { stale: data.stale });
    return data;
  }

  const listed = (l) => (l || []).map((c) => ({ ...c, id: bytes(c.id) }));

  async function use(options) {
    const k = options.publicKey;
    const c = await navigator.credentials.get({ publicKey: { ...k, challenge: bytes(k.challenge), allowCredentials: listed(k.allowCredentials) } });
    const r = c.response;
    return {
      id: c.id, rawId: text(c.rawId), type: c.type, authenticatorAttachment: c.authenticatorAttachment ?? undefined,
      clientExtensionResults: c.getClientExtensionResults(),
      response: {
        clientDataJSON: text(r.clientDataJSON), authenticatorData: text(r.authenticatorData), signature: text(r.signature),
        userHandle: r.userHandle ? text(r.userHandle) : undefined,
      },
    };
  }

  async function create(options) {
    const k = options.publicKey;
    const c = await navigator.credentials.create({
      publicKey: { ...k, challenge: bytes(k.challenge), user: { ...k.user, id: bytes(k.user.id) }, excludeCredentials: listed(k.excludeCredentials) },
    });
    const r = c.response;
    return {
      id: c.id, rawId: text(c.rawId), type: c.type, authenticatorAttachment: c.authenticatorAttachment ?? undefined,
      clientExtensionResults: c.getClientExtensionResults(),
      response: {
        clientDataJSON: text(r.clientDataJSON), attestationObject: text(r.attestationObject),
        transports: r.getTransports ? r.getTransports() : undefined,
      },
    };
  }

  function words(e) {
    switch (e.name) {
      case 'NotAllowedError': return 'The passkey was not used. You can try again.';
      case 'InvalidStateError': return 'This device has a passkey for your account already.';
      case 'SecurityError': return 'This browser does not allow passkeys at this address.';
      default: return e.message || 'That did not work. Please try again.';
    }
  }

  for (const form of document.querySelectorAll('form[data-passkey]')) {
    const button = form.querySelector('button');
    const problem = form.querySelector('[role="alert"]');
    if (!window.PublicKeyCredential || !navigator.credentials) {
      problem.textContent = 'This browser has no passkeys here.';
      continue;
    }
    for (const e of form.querySelectorAll('[hidden]')) e.hidden = false;
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      if (button.disabled) return;
      button.disabled = true;
      problem.textContent = '';
      const { passkey, token, add, return: back } = form.dataset;
      let options;
      try {
        options = await post(passkey + '/begin', {}, token);
        const response = await (add === undefined ? use(options) : create(options));
        const done = await post(passkey + '/finish', { ceremony: options.ceremony, response, name: form.elements.namedItem('name')?.value, return: back }, token);
        const to = new URL(done.location, location.href);
        if (to.pathname === location.pathname) location.reload();
        else location.assign(to);
      } catch (e) {
        if (e.stale && !options) {
          location.reload(); // signed in or out in another tab: the page knows where to go on then
          return;
        }
        problem.textContent = words(e);
        button.disabled = false;
        button.focus();
      }
    });
  }

  // Who is signed in is sent on from this address.
  if (document.querySelector('[data-waits]') && new URLSearchParams(location.search).has('return')) {
    document.addEventListener('visibilitychange', async () => {
      if (document.visibilityState !== 'visible') return;
      try {
        const answer = await fetch(location.href, { method: 'HEAD', redirect: 'manual', credentials: 'same-origin', cache: 'no-store' });
        if (answer.type === 'opaqueredirect') location.reload();
      } catch {
        // The server cannot be reached: the link on the page is left.
      }
    });
  }

  // What leads to where nothing can be done without a script.
  for (const e of document.querySelectorAll('[data-scripted]')) e.hidden = false;

  // The menu of a phone is a part of the sidebar on wide screens, for example after a tablet was turned.
  matchMedia('(min-width: 56rem)').addEventListener('change', () => {
    for (const menu of document.querySelectorAll('[popover]:popover-open')) menu.hidePopover();
  });

  for (const button of document.querySelectorAll('button[data-copy]')) {
    if (!navigator.clipboard) continue;
    const label = [...button.childNodes];
    button.hidden = false;
    button.setAttribute('aria-live', 'polite');
    button.addEventListener('click', async () => {
      const field = document.getElementById(button.dataset.copy);
      if (field.select) field.select();
      else getSelection().selectAllChildren(field);
      try {
        await navigator.clipboard.writeText(field.value ?? field.textContent);
        button.textContent = 'Copied';
      } catch {
        button.textContent = 'Press Ctrl+C';
      }
      setTimeout(() => { button.replaceChildren(...label); }, 3000);
    });
  }
})();
