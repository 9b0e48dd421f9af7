// SPDX-License-Identifier: Apache-2.0
// Overview: how the last runs came out, how near the nearest value is to its limit, what has happened.

const STRIP_RUNS = 50;
const TABLE_RUNS = 15;

class Overview {
  constructor(app) {
    this.app = app;
    this.tiles = h('ul', { class: 'tiles' });
    this.strip = h('div', { class: 'strip', role: 'toolbar', 'aria-label': 'Verdicts of the last runs, the latest on the right' });
    this.strip.addEventListener('keydown', (event) => stripKey(this.strip, event));
    this.lanes = verdictChart(app);
    this.margin = marginChart(app);
    this.events = new EventTable(app);
    this.runs = h('div', {});
    this.rows = TABLE_RUNS;
    byId('overview').append(
      this.tiles,
      h('h3', {}, 'Verdicts of the last runs'),
      this.strip,
      h('figure', {}, this.lanes.node, h('figcaption', {}, 'Every run at the height of its verdict, the worst on top.')),
      h('h3', {}, 'Least margin of each run'),
      h('figure', {}, this.margin.node, h('figcaption', {}, 'Limit − value − U of the requirement that came nearest to its limit, as a share of it: under 0 is no pass. A triangle at the edge is a value beyond the axis.')),
      h('h3', {}, 'Regressions, improvements, changes of the bench'),
      this.events.node,
      h('h3', {}, 'Runs'),
      this.runs,
    );
  }

  refresh() {
    for (const chart of [this.lanes, this.margin]) chart.refresh();
    this._drawTiles();
    this._drawStrip();
    this.zoomed();
  }

  /** Follow the axis: tables show what is in view. */
  zoomed() {
    this.events.refresh();
    this._drawRuns();
  }

  _drawTiles() {
    const { data, filter } = this.app;
    const { runs } = filter;
    if (!runs.length) {
      this.tiles.replaceChildren(tile('Runs', '0', 'none fits the filters'));
      return;
    }
    const last = runs[runs.length - 1];
    const of = (name) => data.runs.list(name)[last];
    const outcomes = data.runs.list('outcome');
    const passed = runs.filter((run) => outcomes[run] === 'pass').length;
    const recent = filter.events.filter((event) => event.kind === 'regression' && data.timeMs[last] - data.timeMs[event.run] < 30 * DAY_MS);
    const silence = adviserSilence(data, filter.series);
    const told = recent.length || filter.series.some((one) => one.earlierRuns >= data.changeNeeds);
    this.age = h('span', {});
    this.tiles.replaceChildren(
      tile('Last run', chip(of('outcome')), h('button', { class: 'link mono', click: () => this.app.openRun(last) }, of('run_id'))),
      tile('Since the last run', this.age, formatTime(data.timeMs[last])),
      tile('Worst margin of the last run', formatPercent(data.runs.numbers('worst_margin_share')[last]), of('worst_requirement') || 'no value with a limit'),
      tile('Passed', formatPercent(passed / runs.length), `${passed} of ${plural(runs.length, 'run')}`),
      tile('Regressions, 30 days', told ? String(recent.length) : NO_VALUE, silence || 'before the last run'),
    );
    this.tellAge();
  }

  /** Say how long ago the last run was: of the reader's clock, so not in the file. */
  tellAge() {
    const { data, filter } = this.app;
    if (filter.runs.length) this.age.textContent = formatAge(Date.now() - data.timeMs[filter.runs[filter.runs.length - 1]]);
  }

  _drawStrip() {
    const { data, filter } = this.app;
    const shown = filter.runs.slice(-STRIP_RUNS);
    const of = (name, run) => data.runs.list(name)[run];
    this.strip.replaceChildren(
      ...Array.from(shown, (run, index) => {
        const outcome = of('outcome', run);
        const text = `${outcome}: ${of('run_id', run)}, ${formatMinute(data.timeMs[run])}`;
        const last = index === shown.length - 1;
        const attributes = { class: outcome, title: text, 'aria-label': text, tabindex: last ? '0' : '-1', click: () => this.app.openRun(run) };
        return h('button', attributes, SYMBOLS[outcome] || '?');
      }),
    );
  }

  _drawRuns() {
    const { data, view } = this.app;
    const inView = [...view.runsInView()].reverse();
    const of = (name, run) => data.runs.list(name)[run];
    const number = (name, run) => data.runs.numbers(name)[run];
    const counts = (run) =>
      ['fail', 'error', 'inconclusive', 'unset', 'pass']
        .filter((outcome) => of(`count_${outcome}`, run))
        .map((outcome) => `${of(`count_${outcome}`, run)} ${SYMBOLS[outcome]}`)
        .join('  ');
    const rows = inView.slice(0, this.rows).map((run) => ({
      cells: [
        h('button', { class: 'link mono', click: () => this.app.openRun(run) }, of('run_id', run)),
        h('span', { class: 'nb' }, formatMinute(data.timeMs[run])),
        chip(of('outcome', run)),
        h('span', { class: 'nb' }, counts(run)),
        formatPercent(number('worst_margin_share', run)),
        of('worst_requirement', run) || '',
        formatValue(number('lateness_max_ns', run), 'ns', 3),
        [of('bench', run), of('profile', run), of('branch', run)].join(' · '),
        h('span', { class: 'mono nb' }, shortCommit(of('commit', run))),
      ],
    }));
    const heads = ['Run', 'Start (UTC)', 'Verdict', 'Values', 'Worst margin#', 'of', 'Generator late#', 'Bench · profile · branch', 'Commit'];
    const more = inView.length > this.rows ? h('button', { click: () => this.more() }, 'Show 50 more') : '';
    this.runs.replaceChildren(table(`${plural(inView.length, 'run')} in view, the latest first`, heads, rows), more);
  }

  more() {
    this.rows += 50;
    this._drawRuns();
  }
}

function stripKey(strip, event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  /** @type {HTMLElement[]} */
  const buttons = [...strip.children];
  const next = buttons[buttons.findIndex((button) => button === document.activeElement) + step];
  if (!step || !next) return;
  for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
  next.focus();
  event.preventDefault();
}

/** Return the chart with a mark for each run at the height of its verdict. */
function verdictChart(app) {
  const { data, filter } = app;
  const codes = data.runs.list('outcome').map((outcome) => {
    const code = OUTCOMES.indexOf(outcome);
    return code < 0 ? OUTCOMES.indexOf('error') : code; // never a pass by accident
  });
  return new Chart(app, {
    height: 132,
    range: [-0.4, 4.4],
    ticks: [0, 1, 2, 3, 4],
    tickText: (code) => `${SYMBOLS[OUTCOMES[code]]} ${OUTCOMES[code].slice(0, 7).replace('inconcl', 'inconc.')}`,
    label: () => `Verdicts of ${plural(filter.runs.length, 'run')} over time`,
    lines: () => [{ name: 'verdict', runs: filter.runs, ys: Float64Array.from(filter.runs, (run) => codes[run]), dots: true }],
    events: () => filter.events.filter((event) => event.kind === 'bench-change'),
    describe: (run) => describeRun(data, run),
    drawMore: drawLanes,
  });
}

function drawLanes(context, chart, toX, toY) {
  const [line] = chart.lines;
  if (!line) return;
  const [first, last] = rowsInView(line, chart.view);
  const room = last - first < chart.plot.width / 5;
  const drawn = new Set();
  for (let row = first; row < last; row++) {
    const code = line.ys[row];
    const x = Math.round(toX(line.xs[row]));
    if (drawn.has(x * 8 + code)) continue;
    drawn.add(x * 8 + code);
    context.fillStyle = ink(OUTCOMES[code]);
    const height = code >= 3 ? 15 : 11;
    const width = room || code >= 2 ? 3 : 1;
    context.fillRect(x - width / 2, toY(code) - height / 2, width, height);
  }
}

/** Return the chart of the least margin of each run. */
function marginChart(app) {
  const { data, filter } = app;
  const share = data.runs.numbers('worst_margin_share');
  const worst = data.runs.list('worst_requirement');
  return new Chart(app, {
    height: 190,
    range: [0, 0.1],
    held: SHARES_SHOWN,
    plainLimits: true,
    tickText: (value) => formatPercent(value, 2),
    label: () => 'Least margin of each run as a share of its limit',
    lines: () =>
      linesOfRuns(app, (run) => share[run]).map((line) => ({ ...line, limits: [new Float64Array(line.runs.length)], primary: true })),
    events: () => filter.events.filter((event) => event.kind === 'bench-change'),
    describe: (run) => [...describeRun(data, run), figureTable([['worst margin', formatPercent(share[run], 5)], ['of', worst[run] || NO_VALUE]])],
  });
}

/** Return a line of a figure of runs for each bench that is shown. */
function linesOfRuns(app, figure) {
  const { data, filter } = app;
  const benches = data.runs.list('bench');
  const outcomes = data.runs.list('outcome');
  const keys = data.runs.list('bench_key');
  return [...new Set(Array.from(filter.runs, (run) => benches[run]))].sort().map((bench, index) => {
    const runs = filter.runs.filter((run) => benches[run] === bench && Number.isFinite(figure(run)));
    return {
      name: bench,
      runs,
      ys: Float64Array.from(runs, figure),
      ink: LINE_INKS[index % LINE_INKS.length],
      dash: DASHES[index % DASHES.length],
      keys: Array.from(runs, (run) => keys[run]),
      codes: Array.from(runs, (run) => OUTCOMES.indexOf(outcomes[run])),
    };
  });
}
