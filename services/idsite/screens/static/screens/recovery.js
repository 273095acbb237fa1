import { h } from '../dom.js';
import { field, form, password } from '../field.js';
import { Failure, api, call } from '../session.js';
import { t } from '../text.js';
import { accountStore, organizationField } from './login.js';

const toSignIn = () => h('p', { class: 'switch' }, h('a', { href: '#/' }, t('toSignIn')));

// forgot sends a reset mail. It says the same whether the account exists.
export function forgot({ application, claims }, retry) {
  const organization = organizationField(claims);
  const email = field({ name: 'email', label: t('login'), autocomplete: 'username', inputmode: 'email' });
  const body = h('div', {},
    h('p', {}, t(retry ? 'forgotRetry' : 'forgotText')),
    form({
      fields: [organization, email].filter(Boolean), button: t('sendLink'),
      submit: async () => {
        await call('POST', application.passwordResetTokens.href, { email: email.value.trim(), ...accountStore(claims, organization) });
        body.replaceChildren(h('p', { role: 'status' }, t('sent')));
      },
    }));
  return [h('h1', {}, t('forgotTitle')), body, toSignIn()];
}

const tokenOf = (claims) => claims.sp_token ?? Object.keys(Object.values(claims.scope?.application ?? {})
  .flat().find((entry) => entry?.passwordResetToken)?.passwordResetToken?.find((each) => typeof each === 'object') ?? {})[0];

// reset sets a new password with the token of a mailed link.
export async function reset({ application, model, claims, go }) {
  const token = tokenOf(claims);
  let at;
  try {
    if (!token) throw new Failure(404, null, false, null);
    at = (await call('GET', `${application.passwordResetTokens.href}/${encodeURIComponent(token)}`)).body.href;
  } catch (failure) {
    if (failure.over || failure.status !== 404) throw failure;
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

// verify confirms an email address with the token of a mailed link.
export async function verify({ claims }) {
  const dead = () => [h('h1', {}, t('deadLinkTitle')), h('p', {}, t('deadLinkText')), toSignIn()];
  if (!claims.sp_token) return dead();
  try {
    await call('POST', `${api}/v1/accounts/emailVerificationTokens/${encodeURIComponent(claims.sp_token)}`);
  } catch (failure) {
    if (failure.over || failure.status !== 404) throw failure;
    return dead();
  }
  return [h('h1', {}, t('verifiedTitle')), h('p', { role: 'status' }, t('verifiedText')), h('a', { class: 'primary', href: '#/' }, t('signIn'))];
}

// unverified says that a mail was sent.
export function unverified() {
  return [h('h1', {}, t('unverifiedTitle')), h('p', { role: 'status' }, t('unverifiedText')), toSignIn()];
}
