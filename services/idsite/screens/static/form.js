// What pages are made of: elements, texts in the language of the page, and forms.

// h creates an element: h('p', {class: 'note'}, 'text', child, …). A property that begins
// with "on" is an event listener; null and false omit an attribute.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let lastID = 0;
export const newID = () => `f${++lastID}`;

// t returns the text of a key in the language of the page (translation, i18n). {name} in a
// text is replaced by a value.
const texts = JSON.parse(document.getElementById('texts').textContent);

export function t(key, values) {
  const text = texts[key] ?? key;
  return values ? text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '') : text;
}

// field is a labelled input. Its node goes into a form; its error is announced.
export function field({ name, label, type = 'text', autocomplete, required = true, value = '', inputmode, hint, maxlength, pattern }) {
  const id = newID();
  const input = h('input', {
    id, name, type, autocomplete, required, value, inputmode, maxlength, pattern,
    autocapitalize: 'none', spellcheck: 'false', 'aria-describedby': `${id}-error${hint ? ` ${id}-hint` : ''}`,
  });
  const error = h('p', { id: `${id}-error`, class: 'field-error', 'aria-live': 'polite' });
  const node = h('div', { class: 'field' },
    h('label', { for: id }, label, required ? null : h('span', { class: 'optional' }, ` ${t('optional')}`)),
    input, hint ? h('p', { id: `${id}-hint`, class: 'hint' }, hint) : null, error);
  const show = (message) => {
    error.textContent = message;
    if (message) input.setAttribute('aria-invalid', 'true');
    else input.removeAttribute('aria-invalid');
  };
  input.addEventListener('input', () => show(''));
  return { node, input, show, get value() { return input.value; } };
}

// check shows what is missing in fields and moves the focus to the first such
// field. It returns whether all are good.
export function check(fields) {
  let first = null;
  for (const each of fields) {
    const problem = problemOf(each.input);
    each.show(problem);
    if (problem && !first) first = each;
  }
  first?.input.focus();
  return first === null;
}

function problemOf(input) {
  if (input.validity.valueMissing || (input.required && input.value.trim() === '')) return t('required');
  if (input.validity.patternMismatch) return t(input.inputMode === 'email' ? 'invalidEmail' : 'invalid');
  return '';
}

const classes = [
  ['requireLowerCase', /\p{Ll}/u, 'needLower'],
  ['requireUpperCase', /\p{Lu}/u, 'needUpper'],
  ['requireNumeric', /\p{Nd}/u, 'needDigit'],
  ['requireSymbol', /[^\p{L}\p{N}\s]/u, 'needSymbol'],
  ['requireDiacritical', /[^\x00-\x7f]/u, 'needDiacritic'],
];

// password is a field with a button that shows what is typed and, for a new
// password, a list of what is still missing.
export function password({ name = 'password', label = t('password'), isNew = false, policy = null }) {
  const made = field({ name, label, type: 'password', autocomplete: isNew ? 'new-password' : 'current-password' });
  const toggle = h('button', { type: 'button', class: 'toggle', 'aria-label': t('showPassword'), 'aria-controls': made.input.id, onclick: () => {
    const shown = made.input.type === 'password';
    made.input.type = shown ? 'text' : 'password';
    toggle.setAttribute('aria-label', t(shown ? 'hidePassword' : 'showPassword')); // the text says what the button does next
    toggle.textContent = t(shown ? 'hide' : 'show');
  } }, t('show'));
  const both = h('div', { class: 'with-toggle' });
  made.input.replaceWith(both);
  both.append(made.input, toggle);
  if (!isNew || !policy) return made;

  const rules = [[() => [...made.input.value].length >= policy.minLength, t('needLength', { n: policy.minLength })]];
  for (const [member, has, key] of classes) if (policy[member]) rules.push([() => has.test(made.input.value), t(key)]);
  const items = rules.map(([, text]) => h('li', {}, text));
  const update = () => rules.forEach(([met], i) => items[i].classList.toggle('met', met()));
  made.input.addEventListener('input', update);
  update();
  const list = h('ul', { class: 'rules', id: `${made.input.id}-rules` }, items);
  made.input.setAttribute('aria-describedby', `${made.input.getAttribute('aria-describedby')} ${list.id}`);
  made.node.append(list);
  return made;
}

// code is a field for a code of a second factor, with white space or digits of any script: the
// service reads it (pkg/field/code.go).
export const code = () => field({ name: 'code', label: t('code'), autocomplete: 'one-time-code', inputmode: 'numeric', maxlength: '40', pattern: '[\\p{Nd}\\p{Cf}\\s]*' });

// email is a field for an address. It is one of text: in a field of type email
// browsers replace an internationalized domain by its ASCII form, under which the
// account would be looked for in vain, and refuse letters outside of ASCII before the
// @. The service decides what an address is.
export const email = () => field({
  name: 'email', label: t('email'), autocomplete: 'username', inputmode: 'email', maxlength: '255', pattern: '.+@.+\\..+',
});

// refusals are the texts of errors, by their code or HTTP status.
const refusals = new Map([
  [t('offline'), 0],
  [t('tooMany'), 429],
  [t('failed'), 500, 503, 13106, 13107],
  [t('notAllowed'), 403],
  [t('gone'), 404],
  [t('wrongLogin'), 7100, 7101, 7102, 7103, 7104, 7105, 7106, 7107, 4605, 5105, 5114],
  [t('unknownOrganization'), 2014],
  [t('fillIn'), 2000],
  [t('taken'), 2001],
  [t('checkEntries'), 2002, 2003, 2004, 2005],
  [t('invalidEmail'), 2006], // no other entry has a form
  [t('emailRefused'), 7204, 7205, 7206],
  [t('noMail'), 6101],
  [t('noNewAccounts'), 4600, 4601, 5100, 5101, 5116, 5117],
  [t('tooShort'), 2007],
  [t('tooLong'), 2008],
  [t('weakPassword'), 400],
  [t('reused'), 6401],
  [t('providerFailed'), 4701, 5201, 6203, 7200, 7201, 7203, 10100, 10101, 10102],
  [t('directoryAway'), 9000, 9001, 9002, 9003, 9004, 9005, 9006],
  [t('phoneInvalid'), 13101],
  [t('phoneTaken'), 13102, 13105],
  [t('wrongCode'), 13104],
  [t('codeExpired'), 13108],
  [t('codeUsed'), 13112],
  [t('codeFailures'), 13113],
  [t('factorDisabled'), 13109, 13110],
].flatMap(([text, ...codes]) => codes.map((code) => [code, text])));

// refusal returns the text for the error of a call, in the language of the page. The message
// of the service, which is in English, is shown for an error without a text, and on an
// English page for 400, because it names the characters that a password lacks.
export function refusal(failure) {
  if (failure.code === 400 && document.documentElement.lang === 'en') return failure.message;
  return refusals.get(failure.code || failure.status) ?? (failure.message || t('failed'));
}

// form is a form of fields and a button. submit is called when all fields are valid; while it
// runs the button is disabled, and an error that it throws is shown.
export function form({ fields, button, submit, extra = null }) {
  const alert = h('p', { class: 'alert', role: 'alert' });
  const go = h('button', { type: 'submit', class: 'primary' }, button);
  const node = h('form', { novalidate: true, onsubmit: async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    alert.textContent = '';
    if (!check(fields)) return;
    go.disabled = true;
    node.setAttribute('aria-busy', 'true');
    try {
      await submit();
    } catch (failure) {
      if (failure.ended) throw failure;
      alert.textContent = refusal(failure);
      fields.find((each) => each.input.type === 'password' || each.input.name === 'code')?.input.select();
    } finally {
      go.disabled = false;
      node.removeAttribute('aria-busy');
    }
  } }, alert, fields.map((each) => each.node), go, extra);
  return node;
}
