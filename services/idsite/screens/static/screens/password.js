// The pages around a password: sign in, registration, email verification, forgot password,
// password reset. They are one file, because browsers load six files at once.
import { email as emailField, field, form, h, password, refusal, t } from '../form.js';
import { Failure, api, call } from '../session.js';
import { afterPassword } from './mfa.js';

const names = { google: 'Google', facebook: 'Facebook', github: 'GitHub', linkedin: 'LinkedIn', twitter: 'X' };

// typed is the login name that was entered last: the other pages begin with it.
let typed = '';

// login is the sign-in page: login name, password, and buttons of providers (social login).
export function login({ application, model, claims, go }) {
  const login = field({ name: 'login', label: t('login'), autocomplete: 'username', value: typed || (claims.login_hint ?? '') });
  login.input.addEventListener('input', () => { typed = login.value.trim(); });
  const secret = password({});
  const organization = organizationField(claims);
  const fields = [organization, login, secret].filter(Boolean);
  return [
    h('h1', {}, t('signInTitle')), organizationName(claims),
    form({
      fields, button: t('signIn'),
      extra: h('p', { class: 'aside' }, h('a', { href: '#/forgot' }, t('forgotLink'))),
      submit: async () => {
        const bytes = new TextEncoder().encode(`${login.value}:${secret.value}`);
        const value = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
        try {
          const { body } = await call('POST', application.loginAttempts.href, { type: 'basic', value, ...accountStore(claims, organization) });
          await afterPassword(body.account.href, go);
        } catch (failure) { // both codes come after the right password alone
          if (failure.code === 7101) go('/disabled');
          else if (failure.code === 7102) go('/unconfirmed');
          else throw failure;
        }
      },
    }),
    providers(claims, model),
    model.passwordPolicy ? h('p', { class: 'switch' }, t('noAccount'), ' ', h('a', { href: '#/register' }, t('registerLink'))) : null,
  ].filter(Boolean);
}

// organizationField is shown where the request has the claim sof, filled in with the
// organization that the request names. Of another account store the claim asnk is its href.
export function organizationField(claims) {
  if (!claims.sof) return null;
  const named = [claims.onk, claims.asnk].find((key) => key && !key.includes('/')) ?? '';
  return field({ name: 'organization', label: t('organization'), autocomplete: 'organization', value: named, hint: t('organizationHint') });
}

// organizationName names the organization of the login, where the page has no field for it.
const organizationName = (claims) => (claims.onk && !claims.sof ? h('p', { class: 'hint organization' }, t('signingInTo', { name: claims.onk })) : null);

// accountStore is the member of a body that names the account store of a login.
export function accountStore(claims, organization) {
  if (organization) return { accountStore: { nameKey: organization.value.trim().toLowerCase() } };
  if (claims.onk) return { accountStore: { nameKey: claims.onk } };
  return {};
}

// providers are the buttons of social and SAML providers.
export function providers(claims, model) {
  if (model.providers.length === 0) return null;
  const refused = /[?&]failed=provider/.test(location.hash);
  const alert = h('p', { class: 'alert', role: 'alert' }, refused ? t('failed') : '');
  const start = async (event, providerId, href) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      if (providerId === 'saml') await call('GET', `${claims.app_href}/saml/sso/idpRedirect?accountStore.href=${encodeURIComponent(href)}`);
      else await call('POST', `${claims.app_href}/loginAttempts`, { type: 'provider', accountStore: { href } });
    } catch (failure) {
      if (failure.ended) throw failure;
      alert.textContent = refusal(failure);
    } finally {
      button.disabled = false;
    }
  };
  return h('section', { class: 'providers', 'aria-label': t('otherWays') },
    h('p', { class: 'or' }, h('span', {}, t('or'))), alert,
    model.providers.map(({ providerId, accountStore: store }) => {
      const name = names[providerId] ?? store.name;
      return h('button', {
        // The style sheet draws the marks of the social providers; another shows the first letter of its name.
        type: 'button', class: names[providerId] ? `provider ${providerId}` : 'provider', 'data-initial': names[providerId] ? null : [...name][0]?.toUpperCase(),
        onclick: (event) => start(event, providerId, store.href),
      }, t('continueWith', { name }));
    }));
}

// register is the registration page. Afterwards the user is signed in, enrolls a factor, or
// has to verify the email address.
export function register({ application, model, claims, go }) {
  if (!model.passwordPolicy) {
    go('/');
    return [h('h1', {}, t('registerTitle'))];
  }
  const organization = organizationField(claims);
  const { requireGivenName, requireSurname } = model.passwordPolicy;
  const name = (name, autocomplete, required) => field({ name, label: t(name), autocomplete, required, maxlength: '255' });
  const given = name('givenName', 'given-name', requireGivenName);
  const surname = name('surname', 'family-name', requireSurname);
  const email = emailField();
  const secret = password({ isNew: true, policy: model.passwordPolicy });
  return [
    h('h1', {}, t('registerTitle')), organizationName(claims),
    form({
      fields: [organization, given, surname, email, secret].filter(Boolean), button: t('register'),
      submit: async () => {
        const body = { givenName: given.value.trim() || null, surname: surname.value.trim() || null, email: email.value.trim(), password: secret.value };
        const target = organization || claims.onk ? { ...body, ...accountStore(claims, organization) } : body;
        const answer = await call('POST', application.accounts.href, target);
        if (answer.status === 202) go('/unverified');
        else await afterPassword(answer.body.href, go);
      },
    }),
    providers(claims, model),
    h('p', { class: 'switch' }, t('haveAccount'), ' ', h('a', { href: '#/' }, t('signInLink'))),
  ].filter(Boolean);
}

const toSignIn = () => h('p', { class: 'switch' }, h('a', { href: '#/' }, t('toSignIn')));

// forgot is the page that requests a password reset mail. It shows the same whether the
// account exists or not.
export function forgot({ application, claims }, retry) {
  const organization = organizationField(claims);
  const email = field({ name: 'email', label: t('login'), autocomplete: 'username', inputmode: 'email', value: typed });
  const body = h('div', {},
    h('p', {}, t(retry ? 'forgotRetry' : 'forgotText')),
    form({
      fields: [organization, email].filter(Boolean), button: t('sendLink'),
      submit: async () => {
        await call('POST', application.passwordResetTokens.href, { email: email.value.trim(), ...accountStore(claims, organization) });
        const sent = h('p', { role: 'status', tabindex: '-1' }, t('sent'));
        body.replaceChildren(sent);
        sent.focus();
      },
    }));
  return [h('h1', {}, t('forgotTitle')), body, toSignIn()];
}

const tokenOf = (claims) => claims.sp_token ?? Object.keys(Object.values(claims.scope?.application ?? {})
  .flat().find((entry) => entry?.passwordResetToken)?.passwordResetToken?.find((each) => typeof each === 'object') ?? {})[0];

// reset is the page that sets a new password with the token of a mailed link.
export async function reset({ application, model, claims, go }) {
  const token = tokenOf(claims);
  let at;
  try {
    if (!token) throw new Failure(404, null, false, null);
    at = (await call('GET', `${application.passwordResetTokens.href}/${encodeURIComponent(token)}`)).body.href;
  } catch (failure) {
    if (failure.ended || failure.status !== 404) throw failure;
    go('/forgot/retry');
    return [h('h1', {}, t('resetTitle'))];
  }
  const secret = password({ label: t('newPassword'), isNew: true, policy: model.passwordPolicy });
  const again = password({ name: 'again', label: t('passwordAgain'), isNew: true });
  const body = h('div', {}, form({
    fields: [secret, again], button: t('setPassword'),
    submit: async () => {
      if (secret.value !== again.value) {
        again.show(t('differ'));
        again.input.focus();
        return;
      }
      await call('POST', at, { password: secret.value });
      body.replaceChildren(h('p', { role: 'status' }, t('passwordSet')), h('a', { class: 'primary', href: '#/' }, t('signIn')));
    },
  }));
  return [h('h1', {}, t('resetTitle')), body];
}

// verify is the page that verifies an email address with the token of a mailed link.
export async function verify({ claims }) {
  const dead = () => [h('h1', {}, t('deadLinkTitle')), h('p', {}, t('deadLinkText'), ' ', t('anotherVerification')), toSignIn()];
  if (!claims.sp_token) return dead();
  let account;
  try {
    account = (await call('POST', `${api}/v1/accounts/emailVerificationTokens/${encodeURIComponent(claims.sp_token)}`)).body;
  } catch (failure) {
    if (failure.ended || failure.status !== 404) throw failure;
    return dead();
  }
  if (account.status !== 'ENABLED') return [h('h1', {}, t('verifiedTitle')), h('p', { role: 'status' }, t('confirmedDisabled'))];
  return [h('h1', {}, t('verifiedTitle')), h('p', { role: 'status' }, t('verifiedText')), h('a', { class: 'primary', href: '#/' }, t('signIn'))];
}

// unverified is the page that says that a verification mail was sent.
export function unverified() {
  return [h('h1', {}, t('unverifiedTitle')), h('p', { role: 'status' }, t('unverifiedText')), h('p', { class: 'hint' }, t('noMailYet')), toSignIn()];
}

// unconfirmed is the page after the right password of an account whose address is not verified: it names the
// address, and sends the verification mail again.
export function unconfirmed({ claims, go }) {
  const email = claims.unverified_email;
  if (!email) return [h('h1', {}, t('unconfirmedTitle')), h('p', { role: 'status' }, t('unconfirmedUnknown')), toSignIn()];
  const status = h('p', { role: 'status', tabindex: '-1' }, t('unconfirmedText', { email }));
  return [h('h1', {}, t('unconfirmedTitle')), status, form({
    fields: [], button: t('sendMail'),
    submit: async () => {
      try {
        await call('POST', `${claims.app_href}/verificationEmails`, { login: email });
        status.textContent = t('mailSent', { email });
      } catch (failure) {
        if (failure.status === 404) return go('/'); // the address is verified meanwhile
        if (failure.status !== 429) throw failure;
        status.textContent = t('mailLimit');
      }
      return status.focus();
    },
  }), toSignIn()];
}

// disabled is the page after the right password of a disabled account.
export function disabled() {
  return [h('h1', {}, t('disabledTitle')), h('p', { role: 'status' }, t('disabledText')), toSignIn()];
}
