// SPDX-License-Identifier: Apache-2.0
// A section of series: one chosen, large, with its quantiles and its margin; all of them beside each other, small.

const CELLS_SHOWN = 96;
const QUANTILE_STYLES = [
  ['p999_ns', 'p99.9', [9, 3, 2, 3]],
  ['p99_ns', 'p99', [7, 3]],
  ['p90_ns', 'p90', [4, 2]],
  ['p50_ns', 'p50', [1.5, 2.5]],
];
const SORTS = [
  ['name', 'name'],
  ['margin', 'least margin'],
  ['events', 'most events'],
];

class SeriesSection {
  constructor(app, id, choose, scale = 'log') {
    this.app = app;
    this.id = id;
    this.choose = choose;
    this.groups = [];
    this.chosen = '';
    this.member = '';
    this.sort = 'name';
    this.scale = scale;
    this.all = false;
    this.cells = [];
    this.large = this._largeChart();
    this.margin = this._marginChart();
    this.controls = h('div', { class: 'controls' });
    this.legend = h('div', { class: 'legend' });
    this.sorting = h('div', { class: 'controls' });
    this.grid = h('div', { class: 'multiples' });
    this.more = h('button', { click: () => this._showAll() }, 'Show all');
    const figure = h('figure', { class: 'large' }, this.legend, this.large.node, h('div', { class: 'small muted axis-name' }, 'Margin as a share of the limit'), this.margin.node);
    this.body = h('div', {}, this.controls, figure, this.sorting, this.grid, this.more);
    this.none = h('p', { class: 'muted' });
    byId(id).append(this.none, this.body);
  }

  get group() {
    return this.groups.find((group) => group.key === this.chosen) || null;
  }

  refresh() {
    const { filter } = this.app;
    this.groups = groupsOf(filter.series.filter(this.choose));
    if (!this.group && this.groups.length) this.chosen = this._first().key;
    this.none.hidden = this.groups.length > 0;
    const there = this.app.data.series.some(this.choose);
    this.none.textContent = there ? 'Nothing of this has all that the filters ask for.' : 'Nothing of this was measured.';
    this.body.hidden = !this.groups.length;
    this._drawControls();
    this._drawCells();
    this._drawLarge();
  }

  /** Show a group large; false where it is not in this section, or filtered out. */
  show(key) {
    if (!this.groups.some((group) => group.key === key)) return false;
    this.chosen = key;
    this.member = '';
    this._drawControls();
    this._drawLarge();
    for (const { group, node } of this.cells) node.classList.toggle('chosen', group.key === key);
    return true;
  }

  _first() {
    return [...this.groups].sort((a, b) => lastShare(a) - lastShare(b))[0];
  }

  _drawLarge() {
    this.large.refresh();
    this.margin.refresh();
    this._drawLegend();
  }

  _drawControls() {
    const { group } = this;
    if (!group) return;
    const names = this.groups.map((one) => [one.key, `${one.name}${one.tags.stream ? ` (${one.tags.requirement})` : ''}`]);
    const members = group.members.map((one) => [String(one.index), one.lineName]);
    const parts = [select('Series', names, this.chosen, (key) => this.show(key))];
    if (members.length > 1) {
      parts.push(select('Of', [['', `all ${members.length}, without quantiles`], ...members], this.member || this._mostRuns(group), (value) => this._choose(value)));
    }
    parts.push(select('Scale', [['log', 'logarithmic'], ['linear', 'linear']], this.scale, (value) => this._scaled(value)));
    this.controls.replaceChildren(...parts);
    this.sorting.replaceChildren(
      h('h3', {}, `All ${this.groups.length}`),
      select('Sorted by', SORTS, this.sort, (value) => this._sorted(value)),
    );
    this.sorting.hidden = this.groups.length < 2;
    this.grid.hidden = this.groups.length < 2;
  }

  _mostRuns(group) {
    const most = [...group.members].sort((a, b) => b.runs.length - a.runs.length)[0];
    this.member = String(most.index);
    return this.member;
  }

  _choose(value) {
    this.member = value || 'all';
    this._drawLarge();
  }

  _scaled(value) {
    this.scale = value;
    this.large.redraw();
    for (const { chart } of this.cells) chart.redraw();
  }

  _sorted(value) {
    this.sort = value;
    this._drawCells();
  }

  _showAll() {
    this.all = true;
    this._drawCells();
  }

  /** Return the series to show large: one, with quantiles, or all of the group. */
  _members() {
    const { group } = this;
    if (!group) return [];
    if (group.members.length === 1 || this.member === 'all') return group.members;
    if (!group.members.some((one) => String(one.index) === this.member)) this._mostRuns(group);
    return group.members.filter((one) => String(one.index) === this.member);
  }

  _largeChart() {
    const { app } = this;
    return new Chart(app, {
      height: 330,
      log: () => this.scale === 'log',
      tickText: (value) => tickText(value, this.group ? this.group.members[0].unit : '', 4),
      label: () => (this.group ? labelOf(this.group) : ''),
      lines: () => linesOf(this._members(), true),
      events: () => eventsOf(app, this._members()),
      describe: (run) => describeGroup(app.data, { ...this.group, members: this._members() }, run),
    });
  }

  _marginChart() {
    const { app } = this;
    return new Chart(app, {
      height: 110,
      range: [0, 0.05],
      held: SHARES_SHOWN,
      plainLimits: true,
      tickText: (value) => formatPercent(value, 2),
      label: () => (this.group ? `Margin of ${this.group.name} as a share of the limit` : ''),
      lines: () =>
        linesOf(this._members(), false).map((line) => ({ ...line, ys: line.series.marginShare, limits: [new Float64Array(line.runs.length)] })),
      describe: (run) => describeGroup(app.data, { ...this.group, members: this._members() }, run),
    });
  }

  _drawLegend() {
    const lines = this.large.lines;
    const items = lines.map((line) => h('span', { class: 'key' }, sample(line.ink, line.dash || [], line.width), line.name));
    if (lines.some((line) => line.band)) items.push(h('span', { class: 'key' }, h('span', { class: 'swatch-band' }), '± U'));
    if (lines.some((line) => line.limits && line.limits.length)) items.push(h('span', { class: 'key' }, sample('limit', [], 2), 'limit'));
    if (lines.some((line) => line.baselines.length)) items.push(h('span', { class: 'key' }, sample('muted', [10, 4], 1), 'median of a baseline'));
    if (lines.some((line) => line.baselines.length > 1)) items.push(h('span', { class: 'key' }, sample('muted', [1, 3], 1), 'the bench changed: a new baseline'));
    this.legend.replaceChildren(...items);
  }

  _drawCells() {
    for (const { chart } of this.cells) chart.remove();
    const sorted = this._sortedGroups();
    const shown = this.all ? sorted : sorted.slice(0, CELLS_SHOWN);
    this.cells = this.groups.length < 2 ? [] : shown.map((group) => this._cell(group));
    this.grid.replaceChildren(...this.cells.map((cell) => cell.node));
    this.more.hidden = shown.length === sorted.length;
    this.more.textContent = `Show all ${sorted.length}`;
  }

  _sortedGroups() {
    const { app, groups } = this;
    const events = (group) => eventsOf(app, group.members).filter((event) => event.kind !== 'bench-change').length;
    const worth = { margin: lastShare, events: (group) => -events(group) }[this.sort];
    if (!worth) return groups;
    const rated = new Map(groups.map((group) => [group, worth(group)]));
    return [...groups].sort((a, b) => rated.get(a) - rated.get(b));
  }

  _cell(group) {
    const { app } = this;
    const chart = new Chart(app, {
      small: true,
      height: 118,
      log: () => this.scale === 'log',
      tickText: (value) => tickText(value, group.members[0].unit, 3),
      label: () => labelOf(group),
      lines: () => linesOf(group.members, false, true),
      events: () => eventsOf(app, group.members).filter((event) => event.kind !== 'bench-change'),
      describe: (run) => describeGroup(app.data, group, run),
    });
    const name = h('button', { class: 'link', click: () => this._enlarge(group) }, group.name);
    const last = lastOf(group);
    const outcome = last ? last.series.table.list('outcome_code')[last.row] : null;
    const figures = last ? `${formatValue(last.series.figure('value')[last.row], last.series.unit, 3)} · ${formatPercent(last.series.marginShare[last.row], 2)}` : '';
    const symbol = outcome === null ? '' : h('span', { class: `${OUTCOMES[outcome]}-ink`, title: OUTCOMES[outcome] }, SYMBOLS[OUTCOMES[outcome]]);
    const head = h('div', { class: 'cell-head' }, name, h('span', { class: 'muted last', title: 'last value, and its margin as a share of the limit' }, figures, ' ', symbol));
    const node = h('div', { class: `cell${group.key === this.chosen ? ' chosen' : ''}` }, head, chart.node);
    return { group, chart, node };
  }

  _enlarge(group) {
    this.show(group.key);
    scrollTo_(this.large.node.closest('figure'));
  }
}

function scrollTo_(node) {
  node.scrollIntoView({ block: 'center', behavior: calm() ? 'auto' : 'smooth' });
}

function calm() {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}

/** Return the last row of a group: {series, row}; null where it has none. */
function lastOf(group) {
  let found = null;
  for (const series of group.members) {
    const row = series.runs.length - 1;
    if (row >= 0 && (!found || series.runs[row] > found.series.runs[found.row])) found = { series, row };
  }
  return found;
}

function lastShare(group) {
  const last = lastOf(group);
  const share = last ? last.series.marginShare[last.row] : NaN;
  return Number.isFinite(share) ? share : Infinity;
}

function labelOf(group) {
  const last = lastOf(group);
  if (!last) return group.name;
  const { series, row } = last;
  const figures = figuresOf(series, row).map(([name, text]) => `${name} ${text}`);
  return `${group.name}, ${group.tags.requirement || ''}: ${plural(series.runs.length, 'run')}; last ${figures.join(', ')}`;
}

function eventsOf(app, members) {
  return app.filter.events.filter((event) => event.series.some((series) => members.includes(series)));
}

/**
 * Return the lines of series: the values, and where one is shown large its U and quantiles. Small, series are told
 * apart by bench alone: profiles and branches would be too many lines.
 */
function linesOf(members, large, small = false) {
  const alone = members.length === 1;
  const benches = [...new Set(members.map((series) => series.tags.bench))];
  const found = members.map((series, place) => {
    const index = small ? benches.indexOf(series.tags.bench) : place;
    const value = series.figure('value');
    const u = series.figure('u');
    const limits = ['limit_upper', 'limit_lower'].map((name) => series.figure(name)).filter((limit) => limit.some(Number.isFinite));
    return {
      name: alone ? spoken(series.tags.statistic || 'value') : series.lineName,
      series,
      runs: series.runs,
      ys: value,
      ink: LINE_INKS[index % LINE_INKS.length],
      dash: DASHES[index % DASHES.length],
      width: large ? 1.8 : 1.1,
      primary: true,
      limits,
      codes: series.table.list('outcome_code'),
      keys: series.table.has('bench_key') ? series.table.list('bench_key') : null,
      band: large && alone ? [value.map((one, row) => one - u[row]), value.map((one, row) => one + u[row])] : null,
    };
  });
  if (!large || !alone) return found;
  const [series] = members;
  const quantiles = QUANTILE_STYLES.filter(([name]) => series.table.has(name));
  return [...quantiles.map(([name, text, dash]) => ({ name: text, series, runs: series.runs, ys: series.table.numbers(name), ink: 'quantile', dash, width: 1.1, keys: found[0].keys })), ...found];
}

/** Return a piece of a line, for a legend. */
function sample(inkName, dash, width = 1.4) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  const line = document.createElementNS(space, 'line');
  for (const [key, value] of Object.entries({ width: 30, height: 10, 'aria-hidden': 'true', class: `ink-${inkName}` })) svg.setAttribute(key, String(value));
  for (const [key, value] of Object.entries({ x1: 0, y1: 5, x2: 30, y2: 5, 'stroke-width': width, 'stroke-dasharray': dash.join(' ') })) line.setAttribute(key, String(value));
  svg.append(line);
  return svg;
}
