// SPDX-License-Identifier: Apache-2.0
// Run detail: all figures of one run, each beside what the runs before it had.

const BEFORE_RUNS = 20;

class RunDetail {
  constructor(app) {
    this.app = app;
    this.node = byId('run');
    this.run = -1;
    this._from = null;
    this.node.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
  }

  open(run) {
    if (this.run < 0) this._from = document.activeElement;
    this.run = run;
    this.node.hidden = false;
    document.body.classList.add('with-run');
    this._draw();
    this.node.scrollTop = 0;
    this.node.focus({ preventScroll: true });
  }

  close() {
    if (this.run < 0) return;
    this.run = -1;
    this.node.hidden = true;
    document.body.classList.remove('with-run');
    if (this._from instanceof HTMLElement && this._from.isConnected) this._from.focus({ preventScroll: true });
    this.app.changed();
  }

  /** Go to the run before or behind this one, of those that are shown. */
  step(by) {
    const { runs } = this.app.filter;
    const next = runs[runs.indexOf(this.run) + by];
    if (next !== undefined && runs.includes(this.run)) this.app.openRun(next);
  }

  _draw() {
    const { data, filter } = this.app;
    const { run } = this;
    const at = filter.runs.indexOf(run);
    const of = (name) => data.runs.list(name)[run];
    const step = (text, by, label) =>
      h('button', { 'aria-label': label, disabled: at < 0 || filter.runs[at + by] === undefined, click: () => this.step(by) }, text);
    this.node.replaceChildren(
      h('div', { class: 'run-bar' }, step('‹', -1, 'Run before'), step('›', 1, 'Run behind'), h('span', { class: 'grow' }), h('button', { 'aria-label': 'Close', click: () => this.close() }, '✕')),
      h('h2', { id: 'run-title' }, 'Run ', h('span', { class: 'mono' }, of('run_id'))),
      h('p', { class: 'run-verdict' }, chip(of('outcome')), of('simulated') ? h('span', { class: 'stamp' }, 'SIMULATED') : '', of('complete') === false ? ' It did not come to its end.' : ''),
      this._facts(),
      ...describeEvents(data.events, run),
      ...partsOfPage().map(({ measurement, title }) => this._values(measurement, title)),
      this._values('hil_verdict', 'Other values'),
      this._bench(),
    );
  }

  _facts() {
    const { data } = this.app;
    const of = (name) => data.runs.list(name)[this.run];
    const counts = OUTCOMES.filter((outcome) => of(`count_${outcome}`)).map((outcome) => `${of(`count_${outcome}`)} ${outcome}`);
    const rows = [
      ['Start', formatTime(data.timeMs[this.run])],
      ['Bench · profile · branch', [of('bench'), of('profile'), of('branch')].join(' · ')],
      ['Commit', of('commit') || 'unknown'],
      ['Duration', formatValue(of('duration_ns'), 'ns')],
      ['Values', counts.join(', ') || NO_VALUE],
      ['Requirements', of('requirements') === null ? NO_VALUE : `${of('requirements')} asked, ${of('requirements_skipped')} skipped, ${of('requirements_untested')} untested`],
      ['Checks of the bench', of('checks_failed') === null ? NO_VALUE : of('checks_failed') ? `${of('checks_failed')} did not pass` : 'none failed'],
      ['Worst margin', `${formatPercent(data.runs.numbers('worst_margin_share')[this.run], 4)} ${of('worst_requirement') || ''}`],
      ['Generator late at most', exactValue(of('lateness_max_ns'), 'ns')],
      ['Largest U of a latency', exactValue(of('u_max_ns'), 'ns')],
      ['Records, lost, problems', `${of('attempts') ?? NO_VALUE}, ${of('lost') ?? NO_VALUE}, ${of('problems') ?? NO_VALUE}`],
      ['Robot tests', `${of('tests_passed') ?? NO_VALUE} passed, ${of('tests_failed') ?? NO_VALUE} failed, ${of('tests_skipped') ?? NO_VALUE} skipped`],
      ['Bench key', of('bench_key') || NO_VALUE],
    ];
    return figureTable(rows);
  }

  _values(measurement, title) {
    const { data } = this.app;
    const found = [];
    for (const series of data.series) {
      const row = series.measurement === measurement ? series.row(this.run) : -1;
      if (row >= 0) found.push({ series, row, code: series.table.list('outcome_code')[row], share: series.marginShare[row] });
    }
    if (!found.length) return '';
    const rank = (share) => (Number.isFinite(share) ? share : Infinity);
    found.sort((a, b) => (b.code ?? -1) - (a.code ?? -1) || rank(a.share) - rank(b.share));
    const rows = found.map(({ series, row, code, share }) => ({
      cells: [
        h('button', { class: 'link', click: () => this.app.showSeries(series) }, [series.tags.requirement, subjectOf(series.tags)].filter(Boolean).join(' · ')),
        code === null ? 'not judged' : chip(OUTCOMES[code]),
        this._value(series, row),
        formatValue(series.figure('u')[row], series.unit, 3),
        limitText(series, row),
        formatPercent(share, 3),
        changeText(series, row),
        countText(series, row),
      ],
    }));
    const heads = ['Of', 'Outcome', 'Value#', 'U#', 'Limit#', 'Margin#', 'Before#', 'n, lost#'];
    const caption = `${title}: the worst first. Before: median of up to ${BEFORE_RUNS} runs on the same bench key, and how far this run is from it.`;
    return table(caption, heads, rows);
  }

  _value(series, row) {
    const reason = series.table.list('reason')[row];
    const value = series.figure('value')[row];
    return h('span', { title: [exactValue(value, series.unit), reason].filter(Boolean).join('; ') }, formatValue(value, series.unit, 4));
  }

  _bench() {
    const { data } = this.app;
    const facts = data.facts[data.runs.list('facts')[this.run]] || {};
    const rows = Object.entries(facts);
    if (!rows.length) return '';
    return h('details', {}, h('summary', {}, 'What the bench was made of'), figureTable(rows));
  }
}

function limitText(series, row) {
  const [lower, upper] = ['limit_lower', 'limit_upper'].map((name) => series.figure(name)[row]);
  const parts = [];
  if (Number.isFinite(lower)) parts.push(`≥ ${formatValue(lower, series.unit, 4)}`);
  if (Number.isFinite(upper)) parts.push(`≤ ${formatValue(upper, series.unit, 4)}`);
  if (!parts.length && !series.inTime && Number.isFinite(series.figure('margin')[row])) return '';
  return parts.join(', ') || NO_VALUE;
}

function countText(series, row) {
  const [n, lost] = ['n', 'lost'].map((name) => series.table.list(name)[row]);
  return n === null ? NO_VALUE : `${exactValue(n, '')}, ${lost ?? NO_VALUE}`;
}

/** Return the median of the runs before on the same bench key, and the difference to it. */
function changeText(series, row) {
  const keys = series.table.list('bench_key');
  const values = series.figure('value');
  const before = [];
  for (let i = row - 1; i >= 0 && before.length < BEFORE_RUNS; i--) {
    if (keys[i] === keys[row] && Number.isFinite(values[i])) before.push(values[i]);
  }
  if (!before.length || !Number.isFinite(values[row])) return NO_VALUE;
  before.sort((a, b) => a - b);
  const middle = before.length >> 1;
  const median = before.length % 2 ? before[middle] : (before[middle - 1] + before[middle]) / 2;
  const text = formatValue(median, series.unit, 3);
  if (!(median > 0) || !(values[row] > 0)) return text;
  const share = values[row] / median - 1;
  return `${text} ${share < 0 ? '' : '+'}${formatPercent(share, 2)}`;
}
