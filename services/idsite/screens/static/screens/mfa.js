// The pages of multi-factor authentication: enrollment of a factor, and its challenge.
import { code, field, form, h, refusal, t } from '../form.js';
import { call, claims as currentClaims } from '../session.js';

const allowed = () => (currentClaims().require_mfa ?? []).map((type) => type.toLowerCase());
const accountKey = 'account';
const enrolledKey = 'enrolled';

const typeOf = (factor) => factor.type.toLowerCase();
const isUsable = (factor) => factor.status === 'ENABLED' && factor.verificationStatus === 'VERIFIED';

const isAllowed = (factor) => allowed().length === 0 || allowed().includes(typeOf(factor));

// afterPassword continues with the second step of a login: a challenge, or the enrollment of
// a factor for an account that has no usable one.
export async function afterPassword(account, go) {
  sessionStorage.setItem(accountKey, account);
  const usable = await usableFactors(account);
  go(usable.length === 0 ? '/mfa/setup' : '/mfa/verify');
}

async function factorsOf(account) {
  const { body } = await call('GET', `${account}/factors`);
  return body.items;
}

// usableFactors are the factors that complete the login or, where the account has none of an
// allowed type, those that it has: one of them is passed before another is enrolled (step-up).
async function usableFactors(account) {
  const usable = (await factorsOf(account)).filter(isUsable);
  const completing = usable.filter(isAllowed);
  return completing.length ? completing : usable;
}

const accountOf = ({ application }) => {
  const id = Object.keys(currentClaims().scope?.account ?? {})[0];
  return id ? `${application.href.split('/applications/')[0].split('/directories/')[0]}/accounts/${id}` : sessionStorage.getItem(accountKey);
};

// mfaSetup is the page that enrolls a factor of a type that the login allows.
export function mfaSetup(page, chosen) {
  const types = allowed();
  const account = accountOf(page);
  if (!account) {
    page.go('/');
    return [h('h1', {}, t('mfaSetupTitle'))];
  }
  const type = types.length === 1 ? types[0] : chosen;
  if (type === 'sms') return setupPhone(account, types);
  if (type === 'google-authenticator') return setupAuthenticator(page, account, types);
  return [
    h('h1', {}, t('mfaSetupTitle')), h('p', {}, t('mfaSetupText')),
    h('div', { class: 'choices' }, (types.length ? types : ['sms', 'google-authenticator']).map((each) => h('a', { class: 'choice', href: `#/mfa/setup/${each}` },
      h('strong', {}, t(`${each}Name`)), h('span', {}, t(`${each}Text`))))),
  ];
}

const otherWay = (types) => (types.length > 1 ? h('p', { class: 'switch' }, h('a', { href: '#/mfa/setup' }, t('otherWay'))) : null);

function setupPhone(account, types) {
  const number = field({ name: 'tel', label: t('phone'), type: 'tel', autocomplete: 'tel', inputmode: 'tel', hint: t('phoneHint') });
  const body = h('div');
  const show = (...content) => {
    body.replaceChildren(...content, otherWay(types) ?? '');
    body.querySelector('input')?.focus();
  };
  const change = h('button', { type: 'button', class: 'link', onclick: () => show(...ask) }, t('changeNumber'));
  const ask = [h('p', {}, t('phoneText')), form({
    fields: [number], button: t('sendCode'),
    submit: async () => show(...await challenge(await enrollPhone(account, number.value)), h('p', { class: 'switch' }, change)),
  })];
  show(...ask);
  return [h('h1', {}, t('phoneTitle')), body];
}

const digits = (number) => number.replace(/\D/g, '').replace(/^0+/, '');

// enrollPhone creates an SMS factor of a number, or finds the unverified one that the user
// has created before.
async function enrollPhone(account, number) {
  try {
    const { body } = await call('POST', `${account}/factors`, { type: 'sms', phone: { number } });
    return { ...body, phone: { number } };
  } catch (failure) {
    if (failure.code !== 13105) throw failure;
    const known = (await factorsOf(account)).find((each) => !isUsable(each) && digits(each.phone?.number ?? '').endsWith(digits(number)));
    if (!known) throw failure;
    return known;
  }
}

// enrollAuthenticator creates an authenticator, or returns the one that was created before a
// reload, because the user may have scanned its QR code already. It is stored for as long as
// the session.
async function enrollAuthenticator(account, issuer) {
  const kept = JSON.parse(sessionStorage.getItem(enrolledKey));
  if (kept?.account.href === account) {
    const found = (await factorsOf(account)).find((each) => each.href === kept.href);
    if (found?.status === 'ENABLED' && !isUsable(found)) return kept;
  }
  const { body } = await call('POST', `${account}/factors`, { type: 'google-authenticator', issuer });
  sessionStorage.setItem(enrolledKey, JSON.stringify(body));
  return body;
}

async function setupAuthenticator({ application }, account, types) {
  const factor = await enrollAuthenticator(account, application.name.replaceAll(':', ' '));
  return [
    h('h1', {}, t('authenticatorTitle')), h('p', {}, t('authenticatorText')),
    h('img', { class: 'qr', width: '200', height: '200', alt: t('qrAlt'), src: `data:image/png;base64,${factor.base64QRImage}` }),
    h('p', { class: 'handheld' }, h('a', { class: 'secondary', href: factor.keyUri }, t('openAuthenticator'))),
    h('details', {}, h('summary', {}, t('cannotScan')), h('p', {}, t('typeKey')), h('p', { class: 'key', dir: 'ltr' }, factor.secret.replace(/(.{4})(?=.)/g, '$1 ')), copyButton(factor.secret)),
    codeForm((value) => call('POST', factor.challenges.href, { code: value })),
    otherWay(types),
  ].filter(Boolean);
}

// copyButton copies the secret of an authenticator.
function copyButton(secret) {
  const done = h('span', { role: 'status' });
  return h('p', { class: 'switch' }, h('button', { type: 'button', class: 'link', onclick: async () => {
    await navigator.clipboard.writeText(secret);
    done.textContent = t('copied');
  } }, t('copyKey')), ' ', done);
}

// mfaVerify is the page that asks for the code of the only usable factor, or of the one that
// the user has selected.
export async function mfaVerify(page, chosen) {
  const account = accountOf(page);
  if (!account) {
    page.go('/');
    return [h('h1', {}, t('mfaTitle'))];
  }
  const usable = await usableFactors(account);
  if (usable.length === 0) {
    page.go('/mfa/setup');
    return [h('h1', {}, t('mfaTitle'))];
  }
  const factor = usable.length === 1 ? usable[0] : usable.find(({ href }) => href.endsWith(`/${chosen}`));
  if (!factor) {
    return [
      h('h1', {}, t('mfaTitle')), h('p', {}, t('mfaChoose')),
      h('div', { class: 'choices' }, usable.map((each) => h('a', { class: 'choice', href: `#/mfa/verify/${each.href.split('/').pop()}` },
        h('strong', {}, t(`${typeOf(each)}Name`)), h('span', { dir: 'ltr' }, each.phone?.number?.replace(/.(?=.{4})/g, '•') ?? each.issuer ?? each.accountName ?? '')))),
    ];
  }
  const other = usable.length > 1 ? h('p', { class: 'switch' }, h('a', { href: '#/mfa/verify' }, t('otherWay'))) : null;
  const next = () => page.go('/mfa/setup'); // the code that completes a login leaves the page
  const content = typeOf(factor) === 'sms' ? await challenge(factor, next) : [
    h('p', {}, t('authenticatorCode')), codeForm((value) => call('POST', factor.challenges.href, { code: value }), next),
  ];
  return [h('h1', {}, t('mfaTitle')), ...content, other].filter(Boolean);
}

// challenge sends a text message with a code and asks for the code. "Send again" creates
// another challenge.
async function challenge(factor, next) {
  let at = (await call('POST', factor.challenges.href, {})).body.href;
  const status = h('p', { role: 'status' }, t('codeSent', { number: factor.phone?.number?.replace(/.(?=.{4})/g, '•') ?? '' }));
  const entry = codeForm((value) => call('POST', at, { code: value }), next);
  const again = h('button', { type: 'button', class: 'link', onclick: async () => {
    if (again.getAttribute('aria-disabled') === 'true') return;
    again.setAttribute('aria-disabled', 'true'); // a button that is disabled would lose the focus
    try {
      at = (await call('POST', factor.challenges.href, {})).body.href;
      status.textContent = t('codeSentAgain');
      entry.querySelector('input').focus();
    } catch (failure) {
      if (failure.ended) throw failure;
      status.textContent = refusal(failure);
    } finally {
      setTimeout(() => again.removeAttribute('aria-disabled'), 10_000);
    }
  } }, t('sendAgain'));
  return [status, entry, h('p', { class: 'switch' }, again)];
}

// codeForm asks for a code. next is called after the code of a step-up.
function codeForm(send, next) {
  const entered = code();
  return form({
    fields: [entered], button: t('confirm'),
    submit: async () => {
      const { body } = await send(entered.value);
      if (body.status === 'SUCCESS') {
        next?.();
        return;
      }
      entered.show(t('wrongCode'));
      entered.input.select();
    },
  });
}
