// SPDX-License-Identifier: Apache-2.0
// The page: its data, its sections, and what happens between them.

const AGE_EVERY_MS = 60e3;

class App {
  constructor(data) {
    this.data = data;
    this.filter = new Filter(data);
    this.view = new View(data, this.filter);
    this.hovered = -1;
    this.tooltip = new Tooltip();
    this.detail = new RunDetail(this);
    const run = restoreState(this);
    this.overview = new Overview(this);
    const of = (measurement) => (series) => series.measurement === measurement && !series.check;
    this.sections = [
      ...partsOfPage().map(({ id, measurement }) => new SeriesSection(this, id, of(measurement))),
      new SeriesSection(this, 'checks', (series) => series.check, 'linear'),
      new SeriesSection(this, 'others', of('hil_verdict'), 'linear'),
    ];
    this.health = new Health(this);
    this.controls = new Controls(this);
    this.view.onChange(() => this.zoomed());
    this.refresh();
    if (run >= 0) this.openRun(run);
    setInterval(() => this.overview.tellAge(), AGE_EVERY_MS);
  }

  setFilter(tag, value) {
    this.filter.set(tag, value);
    this.view.place();
    this.view.reset();
    this.refresh();
  }

  setAxis(byTime) {
    this.view.setByTime(byTime);
    for (const chart of charts) chart.refresh();
  }

  /** Draw everything anew: other runs or series are shown. */
  refresh() {
    for (const part of [this.overview, ...this.sections, this.health]) part.refresh();
    byId('others-part').hidden = !this.sections[4].groups.length;
    this.controls.refresh();
    this.changed();
  }

  zoomed() {
    this.hover(null, -1);
    for (const chart of charts) chart.redraw();
    this.overview.zoomed();
    this.controls.refresh();
    this.changed();
  }

  /** Keep the state in the address, so that it can be handed on. */
  changed() {
    const state = stateOf(this);
    try {
      history.replaceState(null, '', state ? `#${state}` : location.pathname.split('/').pop() || '#');
    } catch {
      // Some browsers let a file not change its address.
    }
  }

  /** Mark a run in all charts, and say what stands there in the one that is looked at. */
  hover(chart, run, event) {
    if (run !== this.hovered) for (const one of charts) if (one.seen) one.showCursor(run);
    this.hovered = run;
    if (!chart || run < 0) {
      this.tooltip.hide();
      return;
    }
    const content = [...chart.options.describe(run), ...describeEvents(chart.events, run)];
    this.tooltip.show(chart, run, content, event);
  }

  openRun(run) {
    this.tooltip.hide();
    this.detail.open(run);
    this.changed();
  }

  /** Show a series large, in the section that it belongs to. */
  showSeries(series) {
    const section = this.sections.find((one) => one.show(series.groupKey));
    if (!section) return;
    if (innerWidth < 900) this.detail.close();
    scrollTo_(section.large.node.closest('figure'));
  }

  showEvent(event) {
    if (event.kind !== 'bench-change' && event.series.length) this.showSeries(event.series[0]);
    else this.openRun(event.run);
  }
}

function say(text) {
  byId('message').hidden = false;
  byId('message').textContent = text;
}

function start() {
  const data = readData(byId('data').textContent);
  restoreTheme();
  if (!data.count) {
    byId('empty').hidden = false;
    byId('empty-all').hidden = data.spool.runs > 0;
    byId('empty-chosen').hidden = data.spool.runs === 0;
    document.body.classList.add('nothing');
    document.documentElement.dataset.ready = 'empty';
    return;
  }
  const app = new App(data);
  addEventListener('beforeprint', drawForPaper);
  addEventListener('afterprint', drawForScreen);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  document.documentElement.dataset.ready = String(app.data.count);
}

addEventListener('error', (event) => say(`This page has failed: ${event.message}`));
start();
