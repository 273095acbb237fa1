// Texts in the language of the page. {name} in a text is replaced by a value.
const language = document.documentElement.lang;
const { texts } = await import(`./texts/${language}.js`);

export function t(key, values) {
  const text = texts[key] ?? key;
  return values ? text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '') : text;
}
