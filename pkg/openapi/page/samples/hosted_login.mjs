// Signs users in through the hosted pages, with Node.js alone.
//
// APPLICATION=<href of the application> node hosted_login.mjs
//
// Then open http://localhost:5000. The application has http://localhost:5000/callback among its
// authorizedCallbackUris. API_KEY_FILE names the file with the API key, LISTEN another address.
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import https from "node:https";

const key = JSON.parse(readFileSync(process.env.API_KEY_FILE ?? ".doorward/apikey.json")); // id, secret, baseUrl, caFile
const application = process.env.APPLICATION;
const listen = process.env.LISTEN ?? "localhost:5000";
const callback = `http://${listen}/callback`;
const hostURL = key.baseUrl.replace(/\/v1$/, "");
const agent = new https.Agent(key.caFile ? { ca: readFileSync(key.caFile) } : {});
const sessions = new Map(); // by the value of the cookie: {state} while a login runs, then {account}

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const decode = (text) => JSON.parse(Buffer.from(text, "base64url"));
const signature = (text) => createHmac("sha256", key.secret).update(text).digest();

// sign makes a JWT (RFC 7519), signed with HS256 and the secret of the API key.
function sign(claims) {
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  return `${text}.${signature(text).toString("base64url")}`;
}

// verify returns the claims of a JWT that was signed with the secret of the API key.
function verify(token) {
  const [header, payload, signed] = token.split(".");
  const given = Buffer.from(signed ?? "", "base64url");
  const right = signature(`${header}.${payload}`);
  if (given.length !== right.length || !timingSafeEqual(given, right) || decode(header).alg !== "HS256") {
    throw new Error("the signature of the assertion is wrong");
  }
  return decode(payload);
}

// read reads a resource with the API key.
function read(href) {
  return new Promise((resolve, reject) => {
    const request = https.get(href, { agent, auth: `${key.id}:${key.secret}`, timeout: 30_000 }, async (answer) => {
      const parts = await answer.toArray();
      if (answer.statusCode === 200) resolve(JSON.parse(Buffer.concat(parts)));
      else reject(new Error(`GET ${href} is ${answer.statusCode}`));
    });
    request.on("error", reject).on("timeout", () => request.destroy(new Error("time out")));
  });
}

// begin sends the browser to the hosted pages with a signed request.
function begin(response, path) {
  const state = randomUUID();
  const request = sign({
    iss: key.id, sub: application, iat: Math.floor(Date.now() / 1000), jti: randomUUID(), cb_uri: callback, state,
  });
  redirect(response, `${hostURL}${path}?jwtRequest=${request}`, { state });
}

// finish takes the signed answer, which counts only for the request of this browser, and once.
async function finish(response, session, assertion) {
  const claims = verify(assertion);
  const { state } = session;
  delete session.state;
  if (!state || claims.state !== state) throw new Error("this is not the answer to a request of this browser");
  if (claims.err) throw new Error(claims.err.message);
  if (claims.aud !== key.id || Date.now() / 1000 > claims.exp) throw new Error("the assertion is for another application, or too old");
  redirect(response, "/", claims.status === "LOGOUT" ? {} : { account: await read(claims.sub) });
}

// redirect redirects with a new session, under a new cookie (against session fixation).
function redirect(response, address, session) {
  const name = randomUUID();
  sessions.set(name, session);
  response.writeHead(302, { Location: address, "Set-Cookie": `session=${name}; HttpOnly; SameSite=Lax; Path=/` }).end();
}

const escape = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const show = (response, status, page) => response.writeHead(status, { "Content-Type": "text/html; charset=utf-8" }).end(page);

const [host, port] = listen.split(":");
createServer(async (request, response) => {
  const url = new URL(request.url, callback);
  const session = sessions.get(/(?:^|; )session=([\w-]+)/.exec(request.headers.cookie ?? "")?.[1]) ?? {};
  try {
    if (url.pathname === "/login") begin(response, "/sso");
    else if (url.pathname === "/logout") begin(response, "/sso/logout");
    else if (url.pathname === "/callback") await finish(response, session, url.searchParams.get("jwtResponse") ?? "");
    else if (session.account) show(response, 200, `Signed in as ${escape(session.account.email)}. <a href="/logout">Sign out</a>`);
    else show(response, 200, `<a href="/login">Sign in</a>`);
  } catch (problem) {
    show(response, 400, `${escape(problem.message)} <a href="/login">Sign in</a>`);
  }
}).listen(Number(port), host);
