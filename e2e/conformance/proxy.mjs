// Adds a bearer token to every request and passes it on with its Host and
// Origin as they came, since the conformance suite has no option for headers
// and tests what a server makes of both.
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

const proxy = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const onward = http.request(
    { hostname: target.hostname, port: target.port, path: request.url, method: request.method, headers },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    },
  );
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});

proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
