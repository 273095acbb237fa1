// The session of a hosted login: every call has a session token, and every answer has the next
// one. The last answer has the address to return to instead
// (docs/interface/id-site.md#session-token-api).

const storageKey = 'session';
export const api = document.querySelector('meta[name=api]').content;

// Failure is the error of a call. A status of 0 means that there was no answer; ended means
// that the session has ended.
export class Failure extends Error {
  constructor(status, body, ended, back) {
    super(body?.message ?? '');
    this.status = status;
    this.code = body?.code ?? 0;
    this.developerMessage = body?.developerMessage ?? '';
    this.ended = ended;
    this.back = back; // where to return to, or null
  }
}

let token = null;
let tokenFromURL = false; // the token came in the fragment of the URL, and not from the storage

// begin reads the session token from the address, and removes it there, or after a reload
// from the storage of this tab.
export function begin() {
  const sent = /[?&]jwt=([^&]+)/.exec(location.hash)?.[1];
  if (sent) {
    token = decodeURIComponent(sent);
    tokenFromURL = true;
    setTimeout(() => { // the first use of the storage may be slow in a browser
      sessionStorage.clear();
      keep(token);
    });
    history.replaceState(null, '', location.pathname + location.hash.replace(/[?&]jwt=[^&]*/, ''));
  } else {
    token = sessionStorage.getItem(storageKey);
  }
  return token !== null;
}

// consumeTokenFromURL reports whether the session token came in the fragment of the URL. It
// returns true once.
export function consumeTokenFromURL() {
  const first = tokenFromURL;
  tokenFromURL = false;
  return first;
}

// keep stores the next session token. When a session ends or begins, all that this tab has
// stored is removed, such as the secret of an authenticator.
function keep(next) {
  token = next;
  if (next === null) sessionStorage.clear();
  else sessionStorage.setItem(storageKey, next);
}

// claims returns the claims of the current session token. They say what a page shows; the
// service decides what is allowed.
export function claims() {
  try {
    const payload = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    return JSON.parse(atob(payload));
  } catch {
    return {};
  }
}

// call sends a request and returns {status, body}. Where the answer ends the
// login it leaves the page, and its promise never settles.
export async function call(method, address, body) {
  if (token === null) throw new Failure(401, null, true, null);
  const headers = { Accept: 'application/json', Authorization: `Bearer ${token}` };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let answer;
  try {
    answer = await fetch(address, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: 'include' });
  } catch {
    throw new Failure(0, null, false, null);
  }
  const redirect = redirectOf(answer);
  const next = answer.headers.get('Authorization')?.replace(/^Bearer /, '') ?? null;
  const text = await answer.text();
  const read = text === '' ? null : parse(text);
  if (answer.status === 401) {
    keep(null);
    throw new Failure(401, read, true, redirect);
  }
  if (redirect !== null) return leave(redirect);
  if (next !== null) keep(next);
  if (!answer.ok) throw new Failure(answer.status, read, false, null);
  return { status: answer.status, body: read };
}

let loading;

// application loads the application of this login with its idSiteModel, what pages show.
export function application() {
  if (loading) return loading;
  const { ash, asnk, app_href: href } = claims();
  loading = call('GET', `${asnk && ash ? ash : href}?expand=idSiteModel`).then(({ body }) => body);
  loading.catch(() => { loading = undefined; });
  return loading;
}

function redirectOf(answer) {
  for (const [name, value] of answer.headers) if (name.endsWith('sso-redirect-location')) return value;
  return null;
}

// leave ends the login. An assertion goes through /sso/ of the service, which creates the
// session of single sign-on; any other address is opened directly.
export function leave(address) {
  keep(null);
  const assertion = /[?&]jwtResponse=([^&#]+)/.exec(address)?.[1];
  location.replace(assertion ? `${api}/sso/?jwtResponse=${assertion}` : address);
  return new Promise(() => {});
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// The first call is sent as soon as this module is there, before the others are.
export const begun = begin();
if (begun) application();
