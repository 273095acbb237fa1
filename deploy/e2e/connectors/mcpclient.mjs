// A client of the Model Context Protocol, by its SDK. It prints the address at which its user logs in,
// receives the code, and prints what the tool of the server says and its access token. Without a
// CLIENT_ID it registers itself (RFC 7591).
import { createServer } from 'node:http'
import { once } from 'node:events'
import { randomUUID } from 'node:crypto'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const { CLIENT_ID, SERVER, TOOL } = process.env
const state = randomUUID()
const callback = createServer().listen(0, '127.0.0.1')
await once(callback, 'listening')
const redirectUrl = `http://127.0.0.1:${callback.address().port}/callback`
let tokens, verifier
let client = CLIENT_ID ? { client_id: CLIENT_ID } : undefined

const authProvider = {
  redirectUrl,
  clientMetadata: { client_name: 'notes', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none' },
  clientInformation: () => client,
  saveClientInformation: (given) => { client = given },
  state: () => state,
  tokens: () => tokens,
  saveTokens: (given) => { tokens = given },
  codeVerifier: () => verifier,
  saveCodeVerifier: (given) => { verifier = given },
  redirectToAuthorization: (address) => console.log(String(address)),
}

const connect = async () => {
  const session = new Client({ name: 'notes', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(SERVER), { authProvider })
  await session.connect(transport).catch((error) => { if (!(error instanceof UnauthorizedError)) throw error })
  return { session, transport }
}

const { transport } = await connect()
const [request, response] = await once(callback, 'request')
response.setHeader('content-type', 'text/html').end('<h1>Welcome back</h1>')
callback.close()
const answer = new URL(request.url, redirectUrl).searchParams
if (answer.get('state') !== state) throw new Error(`the answer is ${answer}`)
await transport.finishAuth(answer.get('code'))
const { session } = await connect()
const { content } = await session.callTool({ name: TOOL })
console.log(content[0].text)
console.log(tokens.access_token)
process.exit(0)
