// SPDX-License-Identifier: Apache-2.0
// Axes: from values to pixels, and where the ticks stand.

const HOUR_MS = 3600e3;
const TIME_TICKS_MS = [60e3, 300e3, 900e3, HOUR_MS, 3 * HOUR_MS, 6 * HOUR_MS, 12 * HOUR_MS];
const DAY_TICKS = [1, 2, 7, 14];
const MONTH_TICKS = [1, 3, 6, 12, 24, 60];
/** Margins as shares of the limit that an axis shows, as reports/page/margins.py does: one fail flattens no passes. */
const SHARES_SHOWN = [-0.5, 1];
/** An axis is made from medians of so many neighbours: one extreme run, or two in a row, do not flatten the others. */
const NEIGHBOURS = 5;
/** Values farther from these medians than so many times their range are marked at the edge. */
const FAR_RANGES = 5;

/** A vertical axis; `log` shows values above zero only. */
class ValueScale {
  constructor(low, high, log) {
    this.log = log;
    this.low = low;
    this.high = high;
    this._from = log ? Math.log(low) : low;
    this._span = (log ? Math.log(high) : high) - this._from || 1;
  }

  /** Return the place of a value, 0 at the bottom, 1 at the top; values beyond are kept at the edge. */
  place(value) {
    const at = ((this.log ? Math.log(value) : value) - this._from) / this._span;
    return at < -0.02 ? -0.02 : at > 1.02 ? 1.02 : at;
  }

  /** Return values for ticks, at most about so many. */
  ticks(most) {
    return this.log ? logTicks(this.low, this.high, most) : linearTicks(this.low, this.high, most);
  }
}

/** Return a scale around the values of a chart, with room above and below. */
function scaleAround(low, high, log) {
  if (!(low <= high)) return new ValueScale(log ? 1 : 0, log ? 10 : 1, log);
  if (log) {
    const room = Math.max(1.15, (high / low) ** 0.06);
    return new ValueScale(low / room, high * room, true);
  }
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return new ValueScale(low - room, high + room, false);
}

/**
 * Return `[low, high]` that an axis need not pass, infinite where no value is far from the others.
 *
 * lines: values of each line, finite, in the order of the runs; pinned: values that the axis shows in any case.
 */
function heldAxis(lines, pinned, log) {
  const at = log ? Math.log : Number;
  const [low, high] = extent([...lines.map(mediansOfNeighbours), pinned].map((values) => values.map(at)));
  const far = (high - low) * FAR_RANGES;
  const near = lines.map((values) => values.filter((value) => at(value) >= low - far && at(value) <= high + far));
  const [shownLow, shownHigh] = extent([...near, pinned]);
  const [least, greatest] = extent(lines);
  if (!(far > 0)) return [-Infinity, Infinity];
  return [least < shownLow ? shownLow : -Infinity, greatest > shownHigh ? shownHigh : Infinity];
}

function mediansOfNeighbours(values) {
  if (values.length < NEIGHBOURS) return values;
  return values.map((_, place) => {
    const first = Math.min(Math.max(0, place - (NEIGHBOURS >> 1)), values.length - NEIGHBOURS);
    return values.slice(first, first + NEIGHBOURS).sort((a, b) => a - b)[NEIGHBOURS >> 1];
  });
}

/** Return the least and the greatest of lists of values. */
function extent(lists) {
  let [low, high] = [Infinity, -Infinity];
  for (const values of lists) {
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return [low, high];
}

function linearTicks(low, high, most) {
  const step = niceStep((high - low) / Math.max(1, most));
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((one) => one * power >= rough * 0.999999);
  return factor * power;
}

function logTicks(low, high, most) {
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const factor of factors) {
        const value = Number((factor * 10 ** power).toPrecision(12));
        if (value >= low && value <= high) found.push(value);
      }
    }
    if (found.length <= most && (found.length >= 2 || factors.length === 3)) {
      return found.length >= 2 ? found : linearTicks(low, high, most).filter((value) => value > 0);
    }
    if (factors.length === 1) {
      const every = Math.ceil(found.length / most);
      return found.filter((_, index) => index % every === 0);
    }
  }
  return [];
}

/** Return `[time in ms, label]` of ticks between two times, UTC, at most about so many. */
function timeTicks(fromMs, toMs, most) {
  const rough = (toMs - fromMs) / Math.max(1, most);
  const small = TIME_TICKS_MS.find((step) => step >= rough);
  if (small) return dayTimes(fromMs, toMs, small);
  const days = DAY_TICKS.find((step) => step * DAY_MS >= rough);
  if (days) return everyDays(fromMs, toMs, days);
  const months = MONTH_TICKS.find((step) => step * 30.5 * DAY_MS >= rough) || 120;
  return everyMonths(fromMs, toMs, months);
}

function dayTimes(fromMs, toMs, step) {
  const found = [];
  for (let at = Math.ceil(fromMs / step) * step; at <= toMs; at += step) {
    const text = new Date(at).toISOString();
    found.push([at, at % DAY_MS === 0 || !found.length ? dayLabel(at, text.slice(11, 16)) : text.slice(11, 16)]);
  }
  return found;
}

function dayLabel(at, time) {
  const date = new Date(at);
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  return at % DAY_MS === 0 ? day : `${day} ${time}`;
}

function everyDays(fromMs, toMs, days) {
  const step = days * DAY_MS;
  const found = [];
  for (let at = Math.ceil(fromMs / step) * step; at <= toMs; at += step) {
    const date = new Date(at);
    const year = !found.length || new Date(found[found.length - 1][0]).getUTCFullYear() !== date.getUTCFullYear();
    found.push([at, `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}${year ? ` ${date.getUTCFullYear()}` : ''}`]);
  }
  return found;
}

function everyMonths(fromMs, toMs, months) {
  const start = new Date(fromMs);
  let month = start.getUTCFullYear() * 12 + start.getUTCMonth();
  month = Math.floor(month / months) * months;
  const found = [];
  for (; ; month += months) {
    const at = Date.UTC(Math.floor(month / 12), month % 12, 1);
    if (at > toMs) return found;
    if (at < fromMs) continue;
    const year = Math.floor(month / 12);
    found.push([at, months >= 12 ? String(year) : `${MONTHS[month % 12]} ${year}`]);
  }
}
