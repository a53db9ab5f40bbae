// The editor in place of the field of a text: CodeMirror with Markdown and front matter.
// The field keeps the text for the form, so everything else works as without this script.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { markdown, markdownKeymap, markdownLanguage } from '@codemirror/lang-markdown';
import { yamlFrontmatter } from '@codemirror/lang-yaml';
import { HighlightStyle, bracketMatching, syntaxHighlighting } from '@codemirror/language';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { EditorSelection, EditorState, Prec } from '@codemirror/state';
import { EditorView, drawSelection, highlightSpecialChars, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { conflicts, firstMark } from './conflicts.js';

const colors = HighlightStyle.define([
  { tag: tags.heading, fontWeight: '700', color: 'var(--ink)' },
  { tag: tags.strong, fontWeight: '700' },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: tags.strikethrough, textDecoration: 'line-through' },
  { tag: [tags.link, tags.url], color: 'var(--accent)' },
  { tag: [tags.processingInstruction, tags.meta, tags.contentSeparator, tags.comment, tags.quote], color: 'var(--code-comment)' },
  { tag: [tags.monospace, tags.string], color: 'var(--code-string)' },
  { tag: [tags.number, tags.bool, tags.atom], color: 'var(--code-number)' },
  { tag: [tags.keyword, tags.propertyName, tags.labelName, tags.tagName, tags.definition(tags.propertyName)], color: 'var(--code-keyword)' },
]);

const look = EditorView.theme({
  '&': { border: '1px solid var(--edge)', borderRadius: 'var(--r)', background: 'var(--sheet)', color: 'var(--ink)', fontSize: 'var(--editor, var(--t-sm))', boxSizing: 'border-box', height: '100%' },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '2px' },
  '.cm-scroller': { font: 'inherit', fontFamily: 'var(--mono)', lineHeight: '1.6', minHeight: 'var(--editor-least, 20rem)', maxHeight: 'var(--editor-most, max(20rem, calc(100dvh - 19rem)))', overflow: 'auto' },
  '.cm-content': { padding: 'var(--s3) 0', caretColor: 'var(--ink)' },
  '.cm-line': { padding: '0 var(--s4)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)', borderLeftWidth: '2px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { background: 'var(--tint)' },
  '.cm-gutters': { background: 'none', border: '0', color: 'var(--soft)' },
  '.cm-panels': { background: 'var(--frame)', color: 'var(--ink)', borderColor: 'var(--line)' },
  '.cm-panel.cm-search': { padding: 'var(--s2) var(--s3)', font: 'inherit' },
  '.cm-textfield': { background: 'var(--sheet)', color: 'var(--ink)', border: '1px solid var(--edge)', borderRadius: 'var(--r-sm)', padding: '4px 8px' },
  '.cm-button': { background: 'var(--sheet)', color: 'var(--ink)', border: '1px solid var(--button)', borderRadius: 'var(--r-sm)', padding: '4px 8px' },
  '.cm-searchMatch': { background: 'var(--found)' },
  '.cm-selectionMatch': { background: 'var(--hover)' },
  '.cm-yours': { background: 'var(--plus)' },
  '.cm-theirs': { background: 'var(--found)' },
  '.cm-mark': { color: 'var(--soft)', fontStyle: 'italic' },
  '.cm-decide': { display: 'grid', gridTemplateColumns: 'repeat(3, minmax(0, 7rem))', gap: 'var(--s2)', padding: 'var(--s2) var(--s4)', font: 'var(--t-sm) system-ui, sans-serif' },
  '.cm-decide button': { minHeight: '32px', padding: '0 var(--s1)', border: '1px solid var(--button)', borderRadius: 'var(--r)', background: 'var(--sheet)', color: 'var(--ink)', font: 'inherit', cursor: 'pointer' },
});

// around puts marks around the selection, or takes them away.
const around = (mark) => (view) => {
  view.dispatch(view.state.changeByRange((r) => {
    const text = view.state.sliceDoc(r.from, r.to);
    const n = mark.length;
    const has = view.state.sliceDoc(r.from - n, r.from) === mark && view.state.sliceDoc(r.to, r.to + n) === mark;
    const range = (from, to) => EditorSelection.range(from, to);
    return has
      ? { changes: [{ from: r.from - n, to: r.from }, { from: r.to, to: r.to + n }], range: range(r.from - n, r.to - n) }
      : { changes: { from: r.from, to: r.to, insert: mark + text + mark }, range: range(r.from + n, r.to + n) };
  }), { scrollIntoView: true, userEvent: 'input' });
  return true;
};

const area = document.getElementById('text');
if (area instanceof HTMLTextAreaElement && Element.prototype.attachShadow) {
  const label = document.querySelector('label[for="text"]');
  const host = document.createElement('div');
  host.className = 'code-editor';
  // In a shadow root, the editor's styles are no inline styles, which the page forbids.
  const root = host.attachShadow({ mode: 'open' });
  area.after(host);
  const isMarkdown = area.dataset.language === 'markdown';
  const language = isMarkdown
    ? [yamlFrontmatter({ content: markdown({ base: markdownLanguage }) }), Prec.high(keymap.of([...markdownKeymap, { key: 'Mod-b', run: around('**') }, { key: 'Mod-i', run: around('*') }]))]
    : [lineNumbers()];
  let own = false; // the field gets its text from here
  const view = new EditorView({
    root, parent: root,
    state: EditorState.create({
      doc: area.value,
      extensions: [
        language, history(), drawSelection(), highlightSpecialChars(), bracketMatching(), highlightSelectionMatches(), search({ top: true }),
        syntaxHighlighting(colors), look, EditorView.lineWrapping, conflicts(),
        keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
        EditorView.scrollMargins.of(() => ({ top: 64, bottom: 80 })), // what stays in sight may cover the text
        EditorView.contentAttributes.of({ 'aria-label': label?.textContent.trim() || 'Text', spellcheck: 'true', autocapitalize: 'sentences' }),
        EditorView.updateListener.of((u) => {
          if (!u.docChanged) return;
          own = true;
          area.value = u.state.doc.toString();
          area.dispatchEvent(new Event('input', { bubbles: true }));
          own = false;
        }),
      ],
    }),
  });
  area.addEventListener('input', () => {
    if (!own) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: area.value } });
  });
  area.hidden = true;
  label?.removeAttribute('for'); // the editor has the same label
  label?.addEventListener('click', () => view.focus());
  // A link to the text leads to the first place that is to be decided, if there is one.
  for (const a of document.querySelectorAll('a[href="#text"]')) {
    a.addEventListener('click', (e) => {
      e.preventDefault();
      const anchor = firstMark(view.state) ?? view.state.selection.main.head;
      view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
      view.focus();
    });
  }
}
