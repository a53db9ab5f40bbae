// An agent that answers a question from the library, with the tools for the AI SDK.
//
//   SATCHEL_URL=https://satchel.example.com SATCHEL_TOKEN=KEY node examples/agent.mjs QUESTION
//
// It runs without the key of a model: a stand-in takes the place of the model, searches for the
// question, and answers with the best page. Replace standIn() with a model, such as
// openai('gpt-5') of @ai-sdk/openai.
import { generateText, stepCountIs } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { Satchel, UnauthorizedError } from 'satchel-client';
import { tools } from 'satchel-client/tools';

const satchel = new Satchel({
  url: process.env.SATCHEL_URL ?? 'http://localhost:8080',
  key: process.env.SATCHEL_TOKEN ?? '',
});

try {
  const { text, steps } = await generateText({
    model: standIn(),
    tools: tools(satchel),
    stopWhen: stepCountIs(8),
    system: 'Answer from the documentation. Name the page.',
    prompt: process.argv.slice(2).join(' '),
  });
  for (const { toolName } of steps.flatMap((s) => s.toolCalls)) console.error(`used ${toolName}`);
  console.log(text);
} catch (error) {
  if (error instanceof UnauthorizedError) console.error(`${error.message} Create a key on the page Account, Keys.`);
  throw error;
}

// standIn returns a model that searches, reads the best page, and answers with the passage that has
// most words of the question.
function standIn() {
  const use = (toolName, input) => result([{ type: 'tool-call', toolCallId: toolName, toolName, input: JSON.stringify(input) }], 'tool-calls');
  const say = (text) => result([{ type: 'text', text }], 'stop');
  const result = (content, reason) => ({
    content,
    finishReason: { unified: reason, raw: undefined },
    usage: { inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 0, text: 0, reasoning: 0 } },
    warnings: [],
  });
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const question = prompt.find((m) => m.role === 'user').content.map((p) => p.text).join(' ');
      const answers = prompt.filter((m) => m.role === 'tool').flatMap((m) => m.content);
      const of = (name) => answers.find((p) => p.toolName === name)?.output.value;
      const [found, read] = [of('search'), of('read')];
      if (!found) return use('search', { query: question, limit: 3 });
      if (found.results.length === 0) return say('No page answers this question.');
      const best = found.results[0];
      if (!read) return use('read', { paths: [best.id] });
      const words = question.toLowerCase().match(/\p{L}{3,}/gu) ?? [];
      const score = (passage) => words.filter((w) => passage.toLowerCase().includes(w)).length;
      const passages = read[0].content.split(/\n\n+/).filter((p) => !p.startsWith('#'));
      const [passage] = passages.sort((a, b) => score(b) - score(a));
      return say(`${passage.trim()}\n\nFrom ${best.url ?? read[0].path}`);
    },
  });
}
