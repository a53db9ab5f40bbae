package connect

import "strings"

// sample is a short program that uses the server with a key in SATCHEL_TOKEN.
type sample struct {
	ID, Title string
	Needs     string // installs what the program needs; empty for nothing
	File, Run string // the name of the program's file, and the command that runs it
	Code      string
}

// samples returns the programs for an MCP address and the address of the REST API. Each program
// saves a fact.
func samples(mcp, api string) []sample {
	fill := strings.NewReplacer("{MCP}", mcp, "{API}", api)
	all := []sample{
		{"ai-sdk", "AI SDK", "npm install ai @ai-sdk/mcp", "agent.mjs", "node agent.mjs", sampleAISDK},
		{"typescript", "TypeScript SDK", "npm install @modelcontextprotocol/sdk", "agent.mjs", "node agent.mjs", sampleTypeScript},
		{"langchain", "LangChain", "npm install @langchain/mcp-adapters @langchain/core", "agent.mjs", "node agent.mjs", sampleLangChain},
		{"python", "Python, without a library", "", "agent.py", "python3 agent.py", samplePython},
	}
	for i := range all {
		all[i].Code = fill.Replace(all[i].Code)
	}
	return all
}

const sampleAISDK = `import { createMCPClient } from '@ai-sdk/mcp'

const client = await createMCPClient({
  transport: {
    type: 'http',
    url: '{MCP}',
    headers: { Authorization: ` + "`Bearer ${process.env.SATCHEL_TOKEN}`" + ` },
  },
})
const tools = await client.tools() // for generateText({ model, tools, … })
const fact = { type: 'preference', key: 'tea', value: 'Drinks green tea' }
const options = { toolCallId: '1', messages: [] }
console.log(await tools.remember.execute({ facts: [fact] }, options))
await client.close()
`

const sampleTypeScript = `import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const client = new Client({ name: 'my-agent', version: '1.0.0' })
await client.connect(new StreamableHTTPClientTransport(new URL('{MCP}'), {
  requestInit: { headers: { Authorization: ` + "`Bearer ${process.env.SATCHEL_TOKEN}`" + ` } },
}))
const fact = { type: 'preference', key: 'tea', value: 'Drinks green tea' }
await client.callTool({ name: 'remember', arguments: { facts: [fact] } })
const answer = await client.callTool({ name: 'instructions', arguments: {} })
console.log(answer.content[0].text)
await client.close()
`

const sampleLangChain = `import { MultiServerMCPClient } from '@langchain/mcp-adapters'

const client = new MultiServerMCPClient({
  satchel: {
    transport: 'http',
    url: '{MCP}',
    headers: { Authorization: ` + "`Bearer ${process.env.SATCHEL_TOKEN}`" + ` },
  },
})
const tools = await client.getTools() // for createAgent({ model, tools })
const fact = { type: 'preference', key: 'tea', value: 'Drinks green tea' }
console.log(await tools.find((tool) => tool.name === 'remember').invoke({ facts: [fact] }))
await client.close()
`

const samplePython = `import json, os, urllib.request

def call(method, path, body):
    request = urllib.request.Request(
        "{API}" + path, json.dumps(body).encode(), method=method,
        headers={"Authorization": "Bearer " + os.environ["SATCHEL_TOKEN"], "Content-Type": "application/json"},
    )
    return json.load(urllib.request.urlopen(request))

fact = {"type": "preference", "key": "tea", "value": "Drinks green tea", "explicit": True}
print(call("PUT", "/memory", {"facts": [fact]}))
for page in call("POST", "/sandbox/search", {"query": "tea"})["results"]:
    print(page["path"], page["title"])
`
