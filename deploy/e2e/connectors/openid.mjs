// openid.mjs runs node-oidc-provider with its own development pages, on which any
// login and password will do: the login is the account. Clients register themselves.
// Settings come from the environment: MODULES, PORT, ISSUER, CERT and KEY.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { generateKeyPairSync } from 'node:crypto';

const { MODULES, PORT, ISSUER, CERT, KEY } = process.env;
const { default: Provider } = await import(`${MODULES}/node_modules/oidc-provider/lib/index.js`);

const key = (type, options, alg) => ({ ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), use: 'sig', alg });
const provider = new Provider(ISSUER, {
  jwks: { keys: [key('rsa', { modulusLength: 2048 }, 'RS256'), key('ec', { namedCurve: 'P-256' }, 'ES256')] },
  cookies: { keys: ['of this run'] },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['given_name', 'family_name', 'locale'] },
  features: { registration: { enabled: true }, devInteractions: { enabled: true } },
  pkce: { methods: ['S256'], required: () => true },
  // An email address that begins with "unverified" is not verified.
  findAccount: (_, id) => ({
    accountId: id,
    claims: async () => ({
      sub: id, email: `${id}@example.test`, email_verified: !id.startsWith('unverified'), given_name: 'Noa', family_name: 'Levi', locale: 'pt-BR',
    }),
  }),
});
createServer({ cert: readFileSync(CERT), key: readFileSync(KEY) }, provider.callback()).listen(Number(PORT), '127.0.0.1');
