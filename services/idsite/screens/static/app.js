// The app of the hosted login page: its routes. A route is a path in the fragment of the
// address; its page is a function in screens/ that returns elements and calls the service
// through session.js.
import { h, t } from './form.js';
import { api, application as load, begin, begun, call, claims, consumeTokenFromURL } from './session.js';
import { disabled, forgot, login, register, reset, unconfirmed, unverified, verify } from './screens/password.js';
import { afterPassword, mfaSetup, mfaVerify } from './screens/mfa.js';

const routes = [
  [/^\/register$/, register],
  [/^\/forgot(?:\/(retry))?$/, forgot],
  [/^\/reset$/, reset],
  [/^\/verify$/, verify],
  [/^\/unverified$/, unverified],
  [/^\/unconfirmed$/, unconfirmed],
  [/^\/disabled$/, disabled],
  [/^\/mfa\/setup(?:\/([\w-]+))?$/, mfaSetup],
  [/^\/mfa\/verify(?:\/([\w-]+)(?:\/[^/]+)?)?$/, mfaVerify],
];
const redirect = /^\/mfa\/redirect(?:\/|$)/; // continues with the second step at once

const main = document.getElementById('app');
let shown = 0;

async function show() {
  const turn = ++shown;
  const path = location.hash.replace(/^#/, '').split('?')[0].replace(/\/$/, '') || '/';
  let screen = login, parts = [];
  for (const [pattern, each] of routes) {
    const match = pattern.exec(path);
    if (match) [screen, parts] = [each, match.slice(1)];
  }
  try {
    const application = await load();
    const account = Object.keys(claims().scope?.account ?? {})[0];
    if (account && (redirect.test(path) || path === '/' && consumeTokenFromURL())) { // a single sign-on session that needs a second step
      const replace = (next) => location.replace(`#${next}`); // the back button must not lead here again
      await afterPassword(`${claims().app_href.split('/applications/')[0]}/accounts/${account}`, path === '/' ? go : replace);
      return;
    }
    const page = { application, model: application.idSiteModel, claims: claims(), go };
    const content = await screen(page, ...parts);
    if (turn === shown) render(application, content);
  } catch (failure) {
    if (turn === shown) showFailure(failure);
  }
}

// go shows another page, as a link does.
function go(path) {
  if (location.hash === `#${path}`) show();
  else location.hash = path;
}

function render(application, content) {
  const { logoUrl, accentColor } = application.idSiteModel;
  if (accentColor) accent(accentColor);
  rememberHome(application);
  const logo = logoUrl ? h('img', { class: 'logo', src: logoUrl, alt: application.name, referrerpolicy: 'no-referrer' }) : brand(application.name);
  main.replaceChildren(h('header', {}, logo), ...content, ...cancel(application));
  main.removeAttribute('aria-busy');
  const heading = main.querySelector('h1');
  document.title = `${heading?.textContent ?? ''} · ${application.name}`;
  const first = main.querySelector('input:not([readonly])') ?? heading;
  if (first === heading) heading?.setAttribute('tabindex', '-1');
  first?.focus({ preventScroll: true });
}

// cancel is the button of a login that the user may leave: the application gets an answer.
function cancel(application) {
  const allowed = Object.values(claims().scope?.application ?? {})[0]?.find((each) => each.loginAttempt)?.loginAttempt;
  if (!allowed?.includes('cancel')) return [];
  const leave = () => call('POST', `${application.loginAttempts.href}/cancel`).catch((failure) => showFailure(failure));
  return [h('p', { class: 'way' }, h('button', { type: 'button', name: 'cancel', class: 'secondary', onclick: leave }, t('cancel')))];
}

// brand is the name of an application that has no logo.
const brand = (name) => h('p', { class: 'brand', 'data-initial': [...name][0]?.toUpperCase() }, name);

// accent sets the accent color of buttons (branding), and black or white for the text on
// them, whichever has more contrast.
function accent(colour) {
  const parts = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour);
  if (!parts) return;
  const [r, g, b] = parts.slice(1).map((hex) => {
    const value = parseInt(hex, 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  document.documentElement.style.setProperty('--accent', colour);
  document.documentElement.style.setProperty('--on-accent', luminance > 0.179 ? '#000000' : '#ffffff');
}

// The home of the last application of this browser: the way out of a page that knows no login any more.
const homeKey = 'home';

// rememberHome stores where the application is: its homeUrl, else the origin of the callback.
function rememberHome(application) {
  const own = application.idSiteModel.homeUrl;
  const callback = claims().cb_uri?.startsWith(`${api}/oidc/`) ? undefined : /^https?:\/\/[^/?#]+/.exec(claims().cb_uri ?? '')?.[0];
  if (!own && !callback) return;
  try {
    localStorage.setItem(homeKey, JSON.stringify({ name: application.name, url: own ?? `${callback}/`, own: Boolean(own) }));
  } catch { /* the browser stores nothing */ }
}

function rememberedHome() {
  try {
    const home = JSON.parse(localStorage.getItem(homeKey));
    return /^https?:/.test(home?.url) ? home : null;
  } catch {
    return null;
  }
}

function showFailure(failure) {
  const ended = failure.ended === true;
  const home = rememberedHome();
  const back = home?.own ? null : failure.back;
  main.replaceChildren(...[
    main.querySelector('header'), // has the name of the application, if that is known
    h('h1', { tabindex: '-1' }, t(ended ? 'overTitle' : 'errorTitle')),
    h('p', {}, t(ended ? 'overText' : failure.status === 0 ? 'offline' : failure.status === 429 ? 'tooMany' : 'errorText')),
    ended ? null : h('button', { class: 'primary', onclick: show }, t('again')),
    back ? h('button', { class: 'primary', onclick: () => location.replace(back) }, t('back')) : null,
    home && !back ? h('p', { class: 'way' }, h('a', { class: ended ? 'primary' : 'secondary', href: home.url }, t('toApplication', { name: home.name }))) : null,
  ].filter(Boolean));
  main.removeAttribute('aria-busy');
  document.title = t(ended ? 'overTitle' : 'errorTitle');
  main.querySelector('h1').focus();
  if (ended && !back && !home) showHomes(shown);
}

// showHomes adds a button to each application of this domain that has a homeUrl: all that is known where this
// browser has had no login here.
async function showHomes(turn) {
  try {
    const answer = await fetch('/homes.json');
    if (!answer.ok) return;
    const { items } = await answer.json();
    if (turn !== shown) return;
    const kind = items.length === 1 ? 'primary' : 'secondary';
    main.append(...items.map(({ name, homeUrl }) => h('p', { class: 'way' }, h('a', { class: kind, href: homeUrl }, t('toApplication', { name })))));
  } catch { /* the text says what to do */ }
}

addEventListener('hashchange', () => {
  if (begin()) show();
});
addEventListener('unhandledrejection', (event) => {
  if (event.reason?.ended) {
    event.preventDefault();
    showFailure(event.reason);
  }
});

if (begun) show();
else showFailure({ ended: true, back: null, api });
