// SPDX-License-Identifier: Apache-2.0
// Values, times and outcomes as a reader wants them; the same rules as reports/units.py.

const NO_VALUE = '–';
const MINUS = '−';
const NARROW_SPACE = '\u202f';
/** @type {[number, string][]} */
const TIME_STEPS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const SYMBOLS = { pass: '✔', fail: '✖', inconclusive: '◐', unset: '○', error: '⚠' };
const OUTCOMES = ['pass', 'unset', 'inconclusive', 'error', 'fail']; // by their code
const EVENT_SYMBOLS = { regression: '▲', improvement: '▼', 'bench-change': '◆' };
const DAY_MS = 86400e3;

/** Return a value with its unit, to some significant digits; ns become µs, ms or s. */
function formatValue(value, unit, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NO_VALUE;
  const [factor, name] = (unit === 'ns' && TIME_STEPS.find(([step]) => Math.abs(value) >= step)) || [1, unit];
  return `${significant(value / factor, digits)} ${name}`.trim();
}

function significant(value, digits) {
  if (value === 0) return '0';
  const decimals = Math.min(20, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value)))));
  let text = value.toFixed(decimals);
  if (text.includes('.')) text = text.replace(/\.?0+$/, '');
  return text.replace('-', MINUS);
}

/** Return the label of a tick. */
function tickText(value, unit, digits = 4) {
  return value === 0 ? '0' : formatValue(value, unit, digits);
}

/** Return a value as it is stored, digits grouped. */
function exactValue(value, unit) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NO_VALUE;
  const [whole, part] = String(value).split('.');
  const grouped = whole.includes('e') ? whole : whole.replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE);
  return `${grouped}${part === undefined ? '' : `.${part}`} ${unit}`.replace('-', MINUS).trim();
}

function formatPercent(share, digits = 3) {
  return Number.isFinite(share) ? `${significant(100 * share, digits)} %` : NO_VALUE;
}

/** Return a time in ms since 1970 as `2026-11-22 04:05:56 UTC`. */
function formatTime(timeMs) {
  return `${new Date(timeMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

function formatMinute(timeMs) {
  return new Date(timeMs).toISOString().slice(0, 16).replace('T', ' ');
}

/** Return how long ago something was, in words. */
function formatAge(ageMs) {
  if (ageMs < 0) return 'in the future of this clock';
  const days = ageMs / DAY_MS;
  if (days >= 10) return `${Math.floor(days)} days`;
  if (days >= 1) return `${(Math.floor(days * 10) / 10).toFixed(1)} days`;
  const hours = Math.floor(ageMs / 3600e3);
  return hours ? `${hours} h` : `${Math.max(0, Math.floor(ageMs / 60e3))} min`;
}

function shortCommit(commit) {
  if (!commit) return 'unknown commit';
  return commit.slice(0, 12) + (commit.endsWith('-dirty') ? '-dirty' : '');
}

function plural(number, word) {
  return `${number.toLocaleString('en').replace(/,/g, NARROW_SPACE)} ${word}${number === 1 ? '' : 's'}`;
}
