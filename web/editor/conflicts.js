// The places that two people changed: colours for both versions, and buttons that decide.
import { RangeSetBuilder, StateField } from '@codemirror/state';
import { Decoration, EditorView, WidgetType } from '@codemirror/view';

// The beginnings of the lines with which the server marks a place; see web/merge.
const begin = '▼▼▼';
const middle = '■■■';
const end = '▲▲▲';

// places returns the marked places of a text, by their lines.
function places(doc) {
  const out = [];
  let at = null;
  for (let n = 1; n <= doc.lines; n++) {
    const text = doc.line(n).text;
    if (text.startsWith(begin)) at = { begin: n };
    else if (text.startsWith(middle) && at && !at.middle) at.middle = n;
    else if (text.startsWith(end) && at?.middle) {
      out.push({ ...at, end: n });
      at = null;
    }
  }
  return out;
}

// firstMark returns where the first marked place begins, or undefined.
export const firstMark = ({ doc }) => {
  const [first] = places(doc);
  return first && doc.line(first.begin).from;
};

class Decide extends WidgetType {
  constructor(index) {
    super();
    this.index = index;
  }

  eq(other) { return other.index === this.index; }

  toDOM(view) {
    const div = document.createElement('div');
    div.className = 'cm-decide';
    div.setAttribute('role', 'group');
    div.setAttribute('aria-label', `Place ${this.index + 1} that both changed`);
    for (const [name, mine, theirs] of [['Keep yours', true, false], ['Keep theirs', false, true], ['Keep both', true, true]]) {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = name;
      button.addEventListener('click', () => { this.keep(view, mine, theirs); });
      div.append(button);
    }
    return div;
  }

  keep(view, mine, theirs) {
    const { doc } = view.state;
    const p = places(doc)[this.index];
    if (!p) return;
    const lines = (from, to) => (from > to ? [] : Array.from({ length: to - from + 1 }, (_, i) => doc.line(from + i).text));
    const kept = [...(mine ? lines(p.begin + 1, p.middle - 1) : []), ...(theirs ? lines(p.middle + 1, p.end - 1) : [])];
    const from = doc.line(p.begin).from;
    const to = Math.min(doc.length, doc.line(p.end).to + 1);
    view.dispatch({ changes: { from, to, insert: kept.length ? `${kept.join('\n')}\n` : '' }, userEvent: 'input' });
    view.focus();
  }

  ignoreEvent() { return true; }
}

function decorate(doc) {
  const out = new RangeSetBuilder();
  const line = (n, name) => out.add(doc.line(n).from, doc.line(n).from, Decoration.line({ class: name }));
  places(doc).forEach((p, i) => {
    const at = doc.line(p.begin).from;
    out.add(at, at, Decoration.widget({ widget: new Decide(i), block: true, side: -1 }));
    line(p.begin, 'cm-mark');
    for (let n = p.begin + 1; n < p.middle; n++) line(n, 'cm-yours');
    line(p.middle, 'cm-mark');
    for (let n = p.middle + 1; n < p.end; n++) line(n, 'cm-theirs');
    line(p.end, 'cm-mark');
  });
  return out.finish();
}

// conflicts shows the marked places. A text that begins without marks has none to decide. An undo
// of the last decision shows its place again.
export function conflicts() {
  let some = false;
  return StateField.define({
    create: (state) => {
      const places = decorate(state.doc);
      some = places.size > 0;
      return places;
    },
    update: (value, tr) => (tr.docChanged && some ? decorate(tr.newDoc) : value),
    provide: (f) => EditorView.decorations.from(f),
  });
}
