// The git repository that the tests import: the real documentation where
// LARGE_TESTDATA names it, else a small generated one of the same shape.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { git } from './git.mjs';

const topics = [
  ['use-fetch', 'useFetch', 'Fetch data from an API endpoint with a composable that is friendly to server rendering.'],
  ['use-async-data', 'useAsyncData', 'Resolve data asynchronously in pages and components, on the server and in the browser.'],
  ['use-lazy-async-data', 'useLazyAsyncData', 'A wrapper that triggers navigation before its handler has resolved.'],
  ['use-state', 'useState', 'Shared state that survives server rendering.'],
  ['use-route', 'useRoute', 'Returns the current route.'],
  ['use-head', 'useHead', 'Customises the head of a page.'],
  ['refresh-data', 'refreshNuxtData', 'Refetches all data and invalidates the caches of useAsyncData and useFetch.'],
];

function generated(dir) {
  const write = (path, text) => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  };
  for (const [file, name, description] of topics) {
    write(`docs/4.api/2.composables/${file}.md`, `---\ntitle: '${name}'\ndescription: ${description}\n---\n\n## Usage\n\nCall \`${name}\` in a component.\n\n\`\`\`ts\nconst value = await ${name}('key', () => load())\n\`\`\`\n\n## Parameters\n\n- \`key\`: a unique name.\n- \`handler\`: what loads the value.\n`);
  }
  for (let i = 0; i < 300; i++) {
    const [, name] = topics[i % topics.length];
    write(`docs/guide/page-${String(i).padStart(3, '0')}.md`, `# Guide ${i}\n\nThis page is about building part ${i} of an application.\n\n## Data\n\nIt mentions ${name} once, among much else: routes, pages, layouts, plugins and modules.\n`);
  }
}

export function makeRepository(dir) {
  const real = process.env.LARGE_TESTDATA && join(process.env.LARGE_TESTDATA, 'docs/nuxt.tar.gz');
  mkdirSync(dir, { recursive: true });
  if (real && existsSync(real)) {
    execFileSync('tar', ['xzf', real, '-C', dir, '--strip-components=1']);
  } else {
    generated(dir);
  }
  git(dir, 'init', '-q', '-b', 'main');
  git(dir, 'add', '-A');
  git(dir, 'commit', '-q', '-m', 'Documentation');
  return { kind: real && existsSync(real) ? 'nuxt' : 'generated', files: readdirSync(dir).length };
}
