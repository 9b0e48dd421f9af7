// SPDX-License-Identifier: Apache-2.0
// Making elements. Text from the store only ever becomes text.

/** Return an element with attributes and children; an attribute that is a function listens to that event. */
function h(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
}

function byId(id) {
  return document.getElementById(id);
}

/** Return the parts of the page that show times: `{ id, measurement, title }`. */
function partsOfPage() {
  return [...document.querySelectorAll('section[data-measurement]')].map((node) => ({
    id: node.id,
    measurement: node.getAttribute('data-measurement'),
    title: node.querySelector('h2').textContent,
  }));
}

/** Return an outcome as symbol and word. */
function chip(outcome) {
  return h('span', { class: `chip ${outcome}` }, h('span', { 'aria-hidden': 'true' }, SYMBOLS[outcome] || '?'), ` ${outcome}`);
}

/** Return a select with choices `[value, text]`. */
function select(label, choices, value, onChange) {
  const node = h('select', { change: () => onChange(node.value) });
  for (const [one, text] of choices) node.append(h('option', { value: one }, text));
  node.value = value;
  return h('label', { class: 'field' }, h('span', {}, label), node);
}

/** Return a table; a head cell that ends in `#` is of numbers. */
function table(caption, heads, rows) {
  const numeric = heads.map((head) => head.endsWith('#'));
  const head = heads.map((text, i) => h('th', { scope: 'col', class: numeric[i] ? 'n' : null }, text.replace(/#$/, '')));
  const body = rows.map(({ cells, ...attributes }) =>
    h('tr', attributes, cells.map((cell, i) => h('td', { class: numeric[i] ? 'n' : null }, cell))),
  );
  return h('div', { class: 'wide' }, h('table', {}, h('caption', {}, h('span', {}, caption)), h('thead', {}, h('tr', {}, head)), h('tbody', {}, body)));
}

function tile(name, figure, note) {
  return h('li', {}, h('div', { class: 'name' }, name), h('div', { class: 'figure' }, figure), h('div', { class: 'small muted' }, note));
}
