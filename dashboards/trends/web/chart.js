// SPDX-License-Identifier: Apache-2.0
// A chart: one canvas with values of runs over the axis that all charts share.

const charts = new Set();
const chartOf = new WeakMap(); // by its node
const REACH_PIXELS = 60;

class Chart {
  /**
   * options: small, height, unit, label (text for a reader without the picture), tickText(value), log ('auto',
   * true, false), range ([low, high] to be inside), held ([low, high] that the axis does not pass; left out: as
   * heldAxis says; values beyond are marked at its edge), lines() (what to draw, made anew when filters change), events(),
   * describe(run, chart) (what the tooltip says), drawMore(context, chart, toX, toY).
   * A line: {name, runs, ys, ink, dash, width, splits, band, codes, limits, keys, markers, primary}.
   */
  constructor(app, options) {
    this.app = app;
    this.view = app.view;
    this.options = { height: 150, log: false, events: () => [], lines: () => [], tickText: String, ...options };
    this.canvas = h('canvas', { tabindex: '0', role: 'img' });
    this.cursor = h('div', { class: 'cursor', hidden: '' });
    this.brush = h('div', { class: 'brush', hidden: '' });
    this.canvas.style.height = `${this.options.height}px`; // so that the page does not move when it is drawn
    this.node = h('div', { class: 'chart' }, this.canvas, this.cursor, this.brush);
    this.eventPlaces = [];
    this.width = 0;
    this.height = this.options.height;
    this.plot = null; // where the values are, once it is drawn
    this.toX = null;
    this.toY = null;
    this.seen = false;
    this.stale = true;
    charts.add(this);
    watchSight(this);
    listenTo(this);
  }

  /** Forget what was made of the data: filters or the selection have changed. */
  refresh() {
    this._lines = null;
    this.redraw();
  }

  redraw() {
    this.stale = true;
    if (this.seen) drawSoon();
  }

  remove() {
    charts.delete(this);
    unwatchSight(this);
  }

  get lines() {
    if (!this._lines) this._prepare();
    return this._lines;
  }

  get events() {
    if (!this._lines) this._prepare();
    return this._events;
  }

  _prepare() {
    const shown = (run) => Number.isFinite(this.view.x[run]);
    this._lines = this.options.lines().filter((line) => line.runs.length);
    for (const line of this._lines) {
      line.baselines = line.keys ? baselinesOf(line.keys, line.ys) : [];
      if (line.keys) {
        line.splits = new Uint8Array(line.ys.length);
        for (const { first } of line.baselines) line.splits[first] = 1;
      }
    }
    this.fixedLimits = fixedLimitsOf(this._lines);
    this._events = this.options.events().filter((event) => shown(event.run));
    this.canvas.setAttribute('aria-label', this.options.label ? this.options.label() : '');
  }

  /** Draw now, as wide as the page gives room, or for paper as wide as is said. */
  draw(resolution = window.devicePixelRatio || 1, paperWidth = 0) {
    const { small, height } = this.options;
    const width = paperWidth || this.node.clientWidth || this.width || 300;
    Object.assign(this, { width, height, font: fontOfPage() });
    const place = { left: small ? 52 : 68, top: small ? 13 : 18, right: small ? 8 : 16, bottom: small ? 20 : 24 };
    this.plot = {
      left: place.left,
      top: place.top,
      width: Math.max(40, width - place.left - place.right),
      height: height - place.top - place.bottom,
    };
    this.canvas.width = Math.round(width * resolution);
    this.canvas.height = Math.round(height * resolution);
    this.canvas.style.aspectRatio = `${width} / ${height}`;
    const context = this.canvas.getContext('2d');
    context.setTransform(resolution, 0, 0, resolution, 0, 0);
    context.clearRect(0, 0, width, height);
    for (const line of this.lines) line.xs = this._placesOf(line);
    this._paint(context);
    this.stale = false;
  }

  /** Return the places of a line's runs; they change with the axis, not with zoom. */
  _placesOf(line) {
    if (line.xsOf !== this.view.x) {
      line.xsOf = this.view.x;
      line.xs = Float64Array.from(line.runs, (run) => this.view.x[run]);
    }
    return line.xs;
  }

  _paint(context) {
    const { view, plot, options } = this;
    const toX = (x) => plot.left + ((x - view.from) / (view.to - view.from)) * plot.width;
    const rows = this.lines.map((line) => rowsInView(line, view));
    const scale = (this.scale = this._scale(rows));
    const toY = (value) => plot.top + plot.height * (1 - scale.place(value));
    Object.assign(this, { toX, toY });
    drawFrame(context, this, scale, toX, toY);
    context.save();
    context.beginPath();
    context.rect(plot.left, 0, plot.width, this.height);
    context.clip();
    this.eventPlaces = drawEvents(context, this, toX);
    context.beginPath();
    context.rect(plot.left, plot.top - 4, plot.width, plot.height + 8);
    context.clip();
    drawBaselineStarts(context, this, toX);
    drawLimits(context, this, rows, toX, toY);
    if (options.drawMore) options.drawMore(context, this, toX, toY);
    this.lines.forEach((line, index) => this._paintLine(context, line, rows[index], toX, toY));
    context.restore();
    if (!this.lines.length) this._paintNothing(context);
  }

  _paintLine(context, line, rows, toX, toY) {
    const { plot, options } = this;
    const style = {
      ink: line.ink || 'type0',
      dash: line.dash || [],
      width: line.width || 1.4,
      pixels: plot.width,
      small: options.small,
      markers: line.primary,
    };
    if (line.band && !options.small) drawBand(context, line, rows, toX, toY, style);
    if (!line.dots) drawLine(context, line, rows, toX, toY, style);
    if (line.primary && !options.small && !options.plainLimits) drawLevels(context, line, toX, toY, plot);
    if (line.primary) drawMarkers(context, line, rows, toX, toY, style);
    drawBeyond(context, this, line, rows);
  }

  _paintNothing(context) {
    context.fillStyle = ink('muted');
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText('no value', this.plot.left + this.plot.width / 2, this.plot.top + this.plot.height / 2);
  }

  /** Return the scale for the values in view, limits and bands with them; note what it does not pass in `held`. */
  _scale(rows) {
    const { log, held, range, small } = this.options;
    const seen = (values, [first, last]) => Array.from(values.slice(first, last)).filter(Number.isFinite);
    const pinned = [...(range || [])];
    const values = this.lines.map((line, index) => {
      for (const limits of line.limits || []) pinned.push(...extent([seen(limits, rows[index])]).filter(Number.isFinite));
      return seen(line.ys, rows[index]);
    });
    const bands = this.lines.map((line, index) => (line.band && !small ? seen(line.band[1], rows[index]) : []));
    const positive = (list) => list.filter((value) => value > 0);
    const all = [...values, ...bands, pinned];
    const wanted = (typeof log === 'function' ? log() : log) && extent(all)[0] >= 0 && extent(all)[1] > 0;
    const usable = (list) => (wanted ? positive(list) : list);
    this.held = held || heldAxis([...values, ...bands].map(usable), usable(pinned), wanted);
    const [low, high] = extent(all.map(usable));
    return scaleAround(Math.max(low, this.held[0]), Math.min(high, this.held[1]), wanted);
  }

  /** Return the run nearest to a place of the pointer, -1 where there is none. */
  runAt(pixelX, pixelY) {
    if (!this.toX) return -1;
    let [best, distance] = [-1, Infinity];
    for (const line of this.lines) {
      const [first, last] = rowsInView(line, this.view);
      for (let row = first; row < last; row++) {
        const away = Math.abs(this.toX(line.xs[row]) - pixelX);
        if (away > REACH_PIXELS) continue;
        const up = Math.abs(this.toY(line.ys[row]) - pixelY);
        const far = away < 3 ? (Number.isFinite(up) ? up / 200 : 1) : away;
        if (far < distance) [best, distance] = [line.runs[row], far];
      }
    }
    return best;
  }

  /** Return all runs of the chart in view, in order. */
  runsInView() {
    const found = new Set();
    for (const line of this.lines) for (const run of line.runs) found.add(run);
    return [...found].filter((run) => this.view.x[run] >= this.view.from && this.view.x[run] <= this.view.to).sort((a, b) => a - b);
  }

  showCursor(run) {
    const x = this.toX && run >= 0 ? this.toX(this.view.x[run]) : NaN;
    const inside = x >= this.plot?.left - 1 && x <= this.plot.left + this.plot.width + 1;
    this.cursor.hidden = !inside;
    if (inside) {
      this.cursor.style.transform = `translateX(${x}px)`;
      this.cursor.style.top = `${this.plot.top}px`;
      this.cursor.style.height = `${this.plot.height}px`;
    }
  }
}

let pageFont = '';
function fontOfPage() {
  if (!pageFont) pageFont = getComputedStyle(document.body).fontFamily;
  return pageFont;
}

// Only charts in sight are drawn; the others when they come into sight, or are printed.
const sight = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const chart = chartOf.get(entry.target);
      chart.seen = entry.isIntersecting;
      if (chart.seen && chart.stale) drawSoon();
    }
  },
  { rootMargin: '120px' },
);
const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) if (target.clientWidth !== chartOf.get(target).width) chartOf.get(target).redraw();
});

function watchSight(chart) {
  chartOf.set(chart.node, chart);
  sight.observe(chart.node);
  sizes.observe(chart.node);
}

function unwatchSight(chart) {
  sight.unobserve(chart.node);
  sizes.unobserve(chart.node);
}

let waiting = false;
/** Draw what is stale and in sight with the next frame. */
function drawSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const start = performance.now();
    for (const chart of charts) if (chart.seen && chart.stale) chart.draw();
    noteDrawing(performance.now() - start);
  });
}

/** Note what drawing costs, for a reader of the page's source and for the tests. */
function noteDrawing(tookMs) {
  const { dataset } = document.documentElement;
  dataset.drawMs = tookMs.toFixed(1);
  dataset.drawings = String(Number(dataset.drawings || 0) + 1);
  if (!dataset.firstDrawnMs) dataset.firstDrawnMs = performance.now().toFixed(0);
}

const PAPER_RESOLUTION = 2;
const PAPER_WIDTH = 1000; // of A4 across, in CSS pixels; the style sheet scales it

/** Draw everything now, in sight or not, finely and in the inks of paper. */
function drawForPaper() {
  document.documentElement.dataset.printing = '';
  forgetInks();
  for (const chart of charts) chart.draw(PAPER_RESOLUTION, chart.options.paperWidth || (chart.options.small ? 245 : PAPER_WIDTH));
}

function drawForScreen() {
  delete document.documentElement.dataset.printing;
  repaint();
}

/** Draw everything in other colours. */
function repaint() {
  forgetInks();
  for (const chart of charts) chart.redraw();
}
