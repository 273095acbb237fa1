import { h } from '../dom.js';
import { field, form, password } from '../field.js';
import { call } from '../session.js';
import { t } from '../text.js';
import { accountStore, organizationField, providers } from './login.js';
import { afterPassword } from './mfa.js';

// register creates an account. Afterwards the user is signed in, sets up a second
// factor, or has to confirm the email address.
export function register({ application, model, claims, go }) {
  if (!model.passwordPolicy) {
    go('/');
    return [h('h1', {}, t('registerTitle'))];
  }
  const organization = organizationField(claims);
  const given = field({ name: 'givenName', label: t('givenName'), autocomplete: 'given-name', required: model.passwordPolicy.requireGivenName });
  const surname = field({ name: 'surname', label: t('surname'), autocomplete: 'family-name', required: model.passwordPolicy.requireSurname });
  const email = field({ name: 'email', label: t('email'), type: 'email', autocomplete: 'username', inputmode: 'email' });
  const secret = password({ isNew: true, policy: model.passwordPolicy });
  return [
    h('h1', {}, t('registerTitle')),
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
