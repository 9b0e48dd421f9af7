// SPDX-License-Identifier: Apache-2.0
// Instrument health: what the bench says of itself, run by run, and how the spool stands.

const HEALTH = [
  ['lateness_max_ns', 'Generator: largest lateness (sent − scheduled)', 'ns', true],
  ['u_max_ns', 'Largest U of a latency', 'ns', true],
  ['checks_failed', 'Checks of the bench that did not pass', '', false],
  ['problems', 'Problems of the run itself', '', false],
  ['lost', 'Messages and edges lost', '', false],
  ['duration_ns', 'Duration of the run', 'ns', false],
  ['points_waiting', 'Spool: points of the run that wait for InfluxDB', '', false],
];

class Health {
  constructor(app) {
    this.app = app;
    this.tiles = h('ul', { class: 'tiles' });
    this.grid = h('div', { class: 'multiples wide-cells' });
    this.charts = HEALTH.map((one) => this._chart(...one));
    this.reasons = h('div', {});
    byId('health').append(this.tiles, this.grid, this.reasons);
    this._drawSpool();
  }

  refresh() {
    for (const chart of this.charts) chart.refresh();
  }

  _chart(name, title, unit, log) {
    const { app } = this;
    const counted = name.startsWith('points_');
    const figure = app.data.runs.numbers(name);
    // A run of which nothing waits has no such count: that is 0.
    const of = counted ? (run) => figure[run] || 0 : (run) => figure[run];
    const chart = new Chart(app, {
      small: true,
      paperWidth: 335,
      height: 140,
      log,
      range: log ? null : [0, unit ? 1 : 4],
      tickText: (value) => tickText(value, unit, 3),
      label: () => `${title}, over time`,
      lines: () => linesOfRuns(app, of).map((line) => ({ ...line, codes: null, primary: true })),
      describe: (run) => [...describeRun(app.data, run), figureTable([[title, exactValue(of(run), unit)]])],
    });
    this.grid.append(h('div', { class: 'cell' }, h('div', { class: 'cell-head' }, h('b', {}, title)), chart.node));
    return chart;
  }

  _drawSpool() {
    const { spool } = this.app.data;
    this.tiles.replaceChildren(
      tile('Points that wait', exactValue(spool.waiting, ''), 'for InfluxDB; without one they wait for ever, which is no fault'),
      tile('Points delivered', exactValue(spool.delivered, ''), 'and acknowledged'),
      tile('Points set aside', exactValue(spool.rejected, ''), 'the server refused them'),
      tile('Runs in the store', exactValue(spool.runs, ''), 'whether shown here or not'),
    );
    if (spool.reasons.length) {
      const rows = spool.reasons.map(([reason, count]) => ({ cells: [String(count), reason] }));
      this.reasons.append(table('Why the server refused points', ['Times#', 'Reason'], rows));
    }
  }
}
