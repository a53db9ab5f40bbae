// Random numbers that a seed decides, in independent streams: what one worker
// draws never depends on how fast another one is.
import { createHash } from 'node:crypto';

export class Random {
  constructor(...names) {
    this.state = createHash('sha256').update(names.join('\0')).digest().readUInt32LE(0);
  }

  // next is a number from 0 up to 1 (mulberry32).
  next() {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  int(n) { return Math.floor(this.next() * n); }
  between(low, high) { return low + this.int(high - low + 1); }
  chance(p) { return this.next() < p; }
  pick(list) { return list[this.int(list.length)]; }

  // weighted picks a key of { key: weight }.
  weighted(weights) {
    let left = this.next() * Object.values(weights).reduce((a, b) => a + b, 0);
    for (const [key, weight] of Object.entries(weights)) if ((left -= weight) < 0) return key;
    return Object.keys(weights)[0];
  }

  shuffled(list) {
    const out = [...list];
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.int(i + 1);
      [out[i], out[j]] = [out[j], out[i]];
    }
    return out;
  }

  // deck yields every entry of { kind: count } once before any comes again.
  *deck(counts) {
    const cards = Object.entries(counts).flatMap(([kind, n]) => Array(n).fill(kind));
    for (;;) yield* this.shuffled(cards);
  }
}
