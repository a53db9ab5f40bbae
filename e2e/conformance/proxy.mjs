// Adds a bearer token to every request and passes it on with its Host and
// Origin as they came, since the conformance suite has no option for headers
// and tests what a server makes of both.
//
// It also keeps a call of a session back until the session's listening stream
// is open, for a second at most: the suite opens the stream beside its first
// call, and a server has nowhere to send what it asks the client before.
//
// usage: node proxy.mjs URL TOKEN
// It listens on a free loopback port, prints it, and ends with standard input.
import http from "node:http";

const [, , url, token] = process.argv;
if (!url || !token) {
  console.error("usage: node proxy.mjs URL TOKEN");
  process.exit(2);
}
const target = new URL(url);
const patience = 1000;

// Sessions with an open listening stream, and what waits for one.
const listening = new Set();
const waiting = new Map();

function opened(session) {
  listening.add(session);
  for (const go of waiting.get(session) ?? []) go();
  waiting.delete(session);
}

function whenListening(session, go) {
  if (listening.has(session)) return go();
  const timer = setTimeout(go, patience);
  waiting.set(session, [...(waiting.get(session) ?? []), () => { clearTimeout(timer); go(); }]);
}

function pass(request, response, body) {
  const session = request.headers["mcp-session-id"];
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const onward = http.request(
    { hostname: target.hostname, port: target.port, path: request.url, method: request.method, headers },
    (answer) => {
      if (request.method === "GET" && session && answer.statusCode === 200) opened(session);
      response.writeHead(answer.statusCode, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    },
  );
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  onward.end(body);
}

const proxy = http.createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  const session = request.headers["mcp-session-id"];
  const send = () => pass(request, response, body);
  if (session && body.includes('"tools/call"')) whenListening(session, send);
  else send();
});

proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
