// A small space as a person has it after a week.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

export const notes = {
  'knowledge/garden/watering.md': `---
title: Watering the garden
updated: 2026-11-12
---

# Watering the garden

The beds behind the house dry out first, because the soil is **sandy** there.

| bed | in spring | in a heat wave |
| --- | --- | --- |
| tomatoes | every third day | every evening |
| herbs | once a week | every third day |
| roses | never: see [the roses](roses.md) | once a week |

- [x] mend the hose
- [ ] a timer for the drip line

\`\`\`python
def litres(beds, heat):
    """What the tank must hold for one evening."""
    return sum(12 if heat else 5 for _ in beds)
\`\`\`
`,
  'knowledge/garden/roses.md': '# Roses\n\nThey were planted in 2021, and stand in clay.\n',
  'knowledge/house/heating.md': '# Heating\n\nThe boiler is serviced each October; the contract is with Lund & Sons.\n',
  'memory/preference/units.md': '---\nvalue: Metric units, and dates as 2026-11-22\nconfidence: 1\nsource: user_explicit\nclient: claude-code\nfirst_seen: 2026-11-03\nlast_confirmed: 2026-11-20\n---\n',
  'memory/preference/tone.md': '---\nvalue: Short answers; say when you are not sure\nconfidence: 1\nsource: user_explicit\nclient: browser\nfirst_seen: 2026-11-02\nlast_confirmed: 2026-11-18\n---\n',
  'memory/person/partner.md': '---\nvalue: Mira, who is allergic to nuts\nconfidence: 0.8\nsource: inferred\nclient: ChatGPT\nfirst_seen: 2026-11-09\nlast_confirmed: 2026-11-09\n---\n',
};

// commands are the changes of an AI.
const commands = [
  ['printf "\\n## Autumn\\n\\nThe drip line is drained before the first frost.\\n" >> knowledge/garden/watering.md', 'Note when the drip line is drained'],
  ['printf "\\nLund & Sons come on the second Tuesday.\\n" >> knowledge/house/heating.md', 'Keep the day of the boiler’s service'],
  ['printf "\\n- Answer in the language of the question.\\n" >> resources/instructions.md', 'Answer in the language of the question'],
];

// aWeek fills the space of the first admin of a server, and returns its ID.
export async function aWeek(s) {
  const dir = join(s.data, 'notes');
  for (const [name, text] of Object.entries(notes)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  s.run('space', 'import', dir, '--user', 'admin');
  const { token } = s.run('token', 'create', '--user', 'admin', '--scope', 'read,write');
  const client = new Client({ name: 'claude-code', version: '2.1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(s.mcp), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
  for (const [command, comment] of commands) await client.callTool({ name: 'bash', arguments: { command, comment } });
  await client.close();
  return s.run('space', 'list')[0].id;
}
