// SPDX-License-Identifier: Apache-2.0
// What the page was given: runs, series of values, events. Columns are unpacked when they are first asked for.

/** Columns of equal length, as dashboards/trends/columns.py packs them. */
class Table {
  constructor(columns, rows) {
    this.rows = rows;
    this._packed = columns;
    this._plain = new Map();
    this._numbers = new Map();
  }

  has(name) {
    return name in this._packed;
  }

  get names() {
    return Object.keys(this._packed);
  }

  /** Return a column as a list; null where a row has no value. */
  list(name) {
    if (!this._plain.has(name)) this._plain.set(name, unpack(this._packed[name], this.rows));
    return this._plain.get(name);
  }

  /** Return a column as numbers; NaN where a row has no value. */
  numbers(name) {
    if (!this._numbers.has(name)) {
      const list = this.list(name);
      const found = new Float64Array(this.rows);
      for (let i = 0; i < this.rows; i++) found[i] = list[i] === null ? NaN : Number(list[i]);
      this._numbers.set(name, found);
    }
    return this._numbers.get(name);
  }
}

function unpack(column, rows) {
  if (column === undefined) return new Array(rows).fill(null);
  if (Array.isArray(column)) return column;
  if ('c' in column) return new Array(rows).fill(column.c);
  const found = [];
  for (let i = 0; i < column.r.length; i += 2) {
    for (let n = column.r[i + 1]; n > 0; n--) found.push(column.r[i]);
  }
  return found;
}

/** Values of one subject, a row a run; in ns where it is a time, else in `unit`. */
class Series {
  constructor(given, index) {
    this.index = index;
    this.tags = given.tags;
    this.measurement = given.measurement;
    this.earlierRuns = given.earlier_runs; // before the last one, that the adviser has of it; null: it is not followed
    this.runs = placesOf(given.runs);
    this.table = new Table(given.columns, this.runs.length);
    this.inTime = this.measurement !== 'hil_verdict';
    this.unit = this.inTime ? 'ns' : this.table.list('unit').find((unit) => unit !== null) || '';
    this.check = this.table.list('check').some((check) => check === true);
  }

  /** Return numbers of `value`, `margin`, `u`, `limit_upper` or `limit_lower`. */
  figure(name) {
    return this.table.numbers(this.inTime ? `${name}_ns` : name);
  }

  /** Return the row of a run, -1 where it has none. */
  row(run) {
    let low = 0;
    let high = this.runs.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (this.runs[middle] === run) return middle;
      if (this.runs[middle] < run) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** Return the margin as a share of the nearer limit, as reports/run/tally.py does; NaN where there is none. */
  get marginShare() {
    if (!this._share) {
      this._share = this.table.has('margin_share') ? this.table.numbers('margin_share') : this._shares();
    }
    return this._share;
  }

  _shares() {
    const [margin, upper, lower] = ['margin', 'limit_upper', 'limit_lower'].map((name) => this.figure(name));
    const value = this.figure('value');
    return margin.map((one, row) => {
      const sizes = [Math.abs(upper[row]), Math.abs(lower[row])].filter((size) => size > 0);
      return sizes.length && Number.isFinite(value[row]) ? one / Math.min(...sizes) : NaN;
    });
  }

  /** Return the name of the group: what is measured, wherever and by whatever job. */
  get groupKey() {
    return [...GROUP_TAGS, ...AXES].map((tag) => this.tags[tag] || '').join('\n');
  }

  get lineName() {
    return LINE_TAGS.map((tag) => this.tags[tag]).filter(Boolean).join(' · ');
  }
}

const GROUP_TAGS = ['requirement', 'quantity', 'statistic', 'target', 'stack', 'condition'];
/** What a value may be of; it comes with the data, the first one first in titles. */
const AXES = [];
const LINE_TAGS = ['bench', 'model', 'profile', 'branch'];

function placesOf(spans) {
  const found = [];
  for (let i = 0; i < spans.length; i += 2) {
    for (let n = 0; n < spans[i + 1]; n++) found.push(spans[i] + n);
  }
  return Int32Array.from(found);
}

/** Read the page's data; throws where it is none of ours. */
function readData(text) {
  const given = JSON.parse(text);
  if (given.schema !== 'benchwright.trends/1') throw new Error(`unknown data: ${given.schema}`);
  AXES.splice(0, AXES.length, ...(given.axes || []));
  const runs = new Table(given.runs, given.number_of_runs);
  const data = {
    selection: given.selection,
    spool: given.spool,
    facts: given.facts,
    changeNeeds: given.change_needs,
    count: given.number_of_runs,
    runs,
    timeMs: runs.numbers('time_us').map((us) => us / 1000),
    series: given.series.map((one, index) => new Series(one, index)),
    events: given.events.map((event, index) => ({ index, ...event, kind: event.tags.kind })),
  };
  for (const event of data.events) event.series = data.series.filter((one) => isAbout(event, one));
  return data;
}

/** Say whether an event is about a series; a change of the bench is about all of that bench. */
function isAbout(event, series) {
  if (event.kind === 'bench-change') return event.tags.bench === series.tags.bench;
  return Object.entries(event.tags).every(
    ([tag, value]) => tag === 'kind' || (tag === 'measurement' ? value === series.measurement : series.tags[tag] === value),
  );
}
