// The protocol's own conformance suite against the real binary in both protocol versions. The
// shipped binary must pass every scenario that does not call the suite's own tools, prompts
// and resources. A binary that has these fixtures must pass the others.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { conformance, scenarios, versions } from './conformance/suite.mjs';
import { Server, remove, tempDir } from './lib/server.mjs';

// The scenarios that call fixtures, with the fixture.
const fixtures = {
  'completion-complete': 'the prompt test_prompt_with_arguments',
  'elicitation-sep1034-defaults': 'the tool test_elicitation_sep1034_defaults',
  'elicitation-sep1330-enums': 'the tool test_elicitation_sep1330_enums',
  'http-custom-header-server-validation': 'a tool with an x-mcp-header argument',
  'input-required-result-basic-elicitation': 'the tool test_input_required_result_elicitation',
  'input-required-result-basic-list-roots': 'the tool test_input_required_result_list_roots',
  'input-required-result-basic-sampling': 'the tool test_input_required_result_sampling',
  'input-required-result-capability-check': 'the tool test_input_required_result_capabilities',
  'input-required-result-ignore-extra-params': 'the tool test_input_required_result_elicitation',
  'input-required-result-missing-input-response': 'the tool test_input_required_result_elicitation',
  'input-required-result-multi-round': 'the tool test_input_required_result_multi_round',
  'input-required-result-multiple-input-requests': 'the tool test_input_required_result_multiple_inputs',
  'input-required-result-non-tool-request': 'the prompt test_input_required_result_prompt',
  'input-required-result-request-state': 'the tool test_input_required_result_request_state',
  'input-required-result-result-type': 'the tool test_input_required_result_elicitation',
  'input-required-result-tampered-state': 'the tool test_input_required_result_tampered_state',
  'input-required-result-validate-input': 'the tool test_input_required_result_elicitation',
  'json-schema-2020-12': 'the tool json_schema_2020_12_tool',
  'prompts-get-embedded-resource': 'the prompt test_prompt_with_embedded_resource',
  'prompts-get-simple': 'the prompt test_simple_prompt',
  'prompts-get-with-args': 'the prompt test_prompt_with_arguments',
  'prompts-get-with-image': 'the prompt test_prompt_with_image',
  'resources-read-binary': 'the resource test://static-binary',
  'resources-read-text': 'the resource test://static-text',
  'resources-subscribe': 'the resource test://watched-resource',
  'resources-templates-read': 'the template test://template/{id}/data',
  'resources-unsubscribe': 'the resource test://watched-resource',
  'server-sse-polling': 'the tool test_reconnection',
  'tools-call-audio': 'the tool test_audio_content',
  'tools-call-elicitation': 'the tool test_elicitation',
  'tools-call-embedded-resource': 'the tool test_embedded_resource',
  'tools-call-error': 'the tool test_error_handling',
  'tools-call-image': 'the tool test_image_content',
  'tools-call-mixed-content': 'the tool test_multiple_content_types',
  'tools-call-sampling': 'the tool test_sampling',
  'tools-call-simple-text': 'the tool test_simple_text',
  'tools-call-with-logging': 'the tool test_tool_with_logging',
  'tools-call-with-progress': 'the tool test_tool_with_progress',
};

// The checks that call fixtures in scenarios that otherwise do not.
const fixtureChecks = {
  'sep-2575-server-rejects-undeclared-capability': 'the tool test_missing_capability',
  'sep-2575-missing-capability-http-400': 'the tool test_missing_capability',
  'sep-2575-http-server-no-independent-requests-on-stream': 'the tool test_streaming_elicitation',
  'sep-2575-server-no-log-without-loglevel': 'the tool test_logging_tool',
  'sep-2575-server-sends-prompts-list-changed-on-subscription': 'the tool test_trigger_prompt_change',
};

// Satchel does not offer the extension for tasks.
const isOffered = ({ name }) => !name.startsWith('tasks-');

const all = await scenarios();
const extensions = all.filter((s) => s.versions.includes('extension') && isOffered(s)).map((s) => s.name);

function checksOf(program, more) {
  const data = tempDir('satchel-conformance-');
  // The suite calls faster than a user may.
  const server = new Server(data, { env: { SATCHEL_SERVER_RATE: '10000' }, ...program });
  let checks;
  before(async () => {
    await server.start();
    checks = await conformance(server.url, server.firstKey(), more);
  });
  after(async () => {
    await server.kill('SIGTERM');
    remove(data);
  });
  return (version, name) => checks.get(`${version} ${name}`) ?? assert.fail(`the suite did not run ${name} in ${version}`);
}

const wrong = (...statuses) => (c) => statuses.includes(c.status);
const told = (checks) => checks.map((c) => `${c.id}: ${c.errorMessage}`).join('\n');

test('every scenario in the lists exists', () => {
  const names = new Set(all.map((s) => s.name));
  assert.deepEqual(Object.keys(fixtures).filter((name) => !names.has(name)), []);
});

describe('the shipped binary', () => {
  const checksIn = checksOf({}, extensions);
  for (const s of all.filter((s) => !fixtures[s.name] && isOffered(s))) {
    const of = s.versions.includes('extension') ? versions.slice(-1) : versions.filter((v) => s.versions.includes(v));
    for (const version of of) {
      test(`${s.name} in ${version}`, () => {
        const failed = checksIn(version, s.name).filter(wrong('FAILURE', 'WARNING'));
        assert.equal(told(failed.filter((c) => !fixtureChecks[c.id])), '');
      });
    }
  }
});

describe('the binary with fixtures', () => {
  const checksIn = checksOf({ program: join(import.meta.dirname, '../bin/satchel-conformance') });
  for (const { name, versions: of } of all.filter((s) => fixtures[s.name])) {
    for (const version of versions.filter((v) => of.includes(v))) {
      test(`${name} in ${version}`, () => {
        assert.equal(told(checksIn(version, name).filter(wrong('FAILURE'))), '');
      });
    }
  }
  test('the other checks of fixtures', () => {
    const called = all.filter((s) => !fixtures[s.name] && s.versions.includes(versions.at(-1)))
      .flatMap((s) => checksIn(versions.at(-1), s.name)).filter((c) => fixtureChecks[c.id]);
    assert.deepEqual(new Set(called.map((c) => c.id)), new Set(Object.keys(fixtureChecks)));
    assert.equal(told(called.filter(wrong('FAILURE', 'WARNING'))), '');
  });
});
