import { h } from '../dom.js';
import { field, form, password } from '../field.js';
import { call } from '../session.js';
import { t } from '../text.js';
import { afterPassword } from './mfa.js';

const names = { google: 'Google', facebook: 'Facebook', github: 'GitHub', linkedin: 'LinkedIn', twitter: 'X' };

// login asks for a login name and a password, and offers the providers.
export function login({ application, model, claims, go }) {
  const login = field({ name: 'username', label: t('login'), autocomplete: 'username' });
  const secret = password({});
  const organization = organizationField(claims);
  const fields = [organization, login, secret].filter(Boolean);
  return [
    h('h1', {}, t('signInTitle')),
    form({
      fields, button: t('signIn'),
      extra: h('p', { class: 'aside' }, h('a', { href: '#/forgot' }, t('forgotLink'))),
      submit: async () => {
        const bytes = new TextEncoder().encode(`${login.value}:${secret.value}`);
        const value = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
        const { body } = await call('POST', application.loginAttempts.href, { type: 'basic', value, ...accountStore(claims, organization) });
        await afterPassword(body.account.href, go);
      },
    }),
    providers(claims, model),
    model.passwordPolicy ? h('p', { class: 'switch' }, t('noAccount'), ' ', h('a', { href: '#/register' }, t('registerLink'))) : null,
  ].filter(Boolean);
}

// organizationField is there where the request asks for it, filled in with the
// organization that it names.
export function organizationField(claims) {
  if (!claims.sof) return null;
  return field({ name: 'organization', label: t('organization'), autocomplete: 'organization', value: claims.onk ?? '', hint: t('organizationHint') });
}

// accountStore is the member of a body that says where the login is looked for.
export function accountStore(claims, organization) {
  if (organization) return { accountStore: { nameKey: organization.value.trim().toLowerCase() } };
  if (claims.onk) return { accountStore: { nameKey: claims.onk } };
  return {};
}

// providers are the buttons of other directories.
export function providers(claims, model) {
  if (model.providers.length === 0) return null;
  const refused = /[?&]failed=provider/.test(location.hash);
  const alert = h('p', { class: 'alert', role: 'alert' }, refused ? t('failed') : '');
  const start = async (event, providerId, href) => {
    event.currentTarget.disabled = true;
    try {
      if (providerId === 'saml') await call('GET', `${claims.app_href}/saml/sso/idpRedirect?accountStore.href=${encodeURIComponent(href)}`);
      else await call('POST', `${claims.app_href}/loginAttempts`, { type: 'provider', accountStore: { href } });
    } catch (failure) {
      if (failure.over) throw failure;
      alert.textContent = failure.message || t('failed');
    } finally {
      event.target.disabled = false;
    }
  };
  return h('section', { class: 'providers', 'aria-label': t('otherWays') },
    h('p', { class: 'or' }, h('span', {}, t('or'))), alert,
    model.providers.map(({ providerId, accountStore: store }) => h('button', { type: 'button', class: 'provider', onclick: (event) => start(event, providerId, store.href) },
      t('continueWith', { name: names[providerId] ?? store.name }))));
}
