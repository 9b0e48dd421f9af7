// SPDX-License-Identifier: Apache-2.0
// The horizontal axis that all charts share: time, or runs one behind the other; zoom, and the way back.

const VIEW_RUNS_MIN = 2;

class View {
  constructor(data, filter) {
    this._data = data;
    this._filter = filter;
    this._listeners = [];
    this.byTime = true;
    this.place();
    this.reset();
  }

  onChange(listener) {
    this._listeners.push(listener);
  }

  /** Lay out the runs anew: a run that is not shown has no place. */
  place() {
    const { runs } = this._filter;
    this.x = new Float64Array(this._data.count).fill(NaN);
    runs.forEach((run, index) => {
      this.x[run] = this.byTime ? this._data.timeMs[run] : index;
    });
    const first = runs.length ? this.x[runs[0]] : 0;
    const last = runs.length ? this.x[runs[runs.length - 1]] : 1;
    const room = Math.max((last - first) * 0.015, this.byTime ? 60e3 : 0.5);
    this.whole = [first - room, last + room];
  }

  reset() {
    this._back = [];
    [this.from, this.to] = this.whole;
    this._changed();
  }

  get zoomed() {
    return this.from > this.whole[0] || this.to < this.whole[1];
  }

  get canGoBack() {
    return this._back.length > 0;
  }

  /** Show from .. to; `keep`: the way back leads here first. */
  zoom(from, to, keep = true) {
    const least = this.byTime ? 60e3 : VIEW_RUNS_MIN;
    const span = Math.min(Math.max(to - from, least), this.whole[1] - this.whole[0]);
    const middle = (from + to) / 2;
    let low = Math.max(this.whole[0], middle - span / 2);
    if (low + span > this.whole[1]) low = this.whole[1] - span;
    if (keep) this._back.push([this.from, this.to]);
    [this.from, this.to] = [low, low + span];
    this._changed();
  }

  /** Zoom by a factor around a place; under 1 shows less. */
  zoomAround(x, factor) {
    this.zoom(x - (x - this.from) * factor, x + (this.to - x) * factor, false);
  }

  pan(share) {
    const by = (this.to - this.from) * share;
    this.zoom(this.from + by, this.to + by, false);
  }

  back() {
    const last = this._back.pop();
    if (last) {
      [this.from, this.to] = last;
      this._changed();
    }
  }

  /** Change between time and order of runs; the runs in sight stay in sight. */
  setByTime(byTime) {
    const seen = this.runsInView();
    const whole = !this.zoomed;
    this.byTime = byTime;
    this.place();
    this._back = [];
    [this.from, this.to] = this.whole;
    if (!whole && seen.length) this._around(seen);
    this._changed();
  }

  /** Show the last so many runs, or those of the last days before the last run. */
  showLast(runs) {
    if (runs.length) {
      this._back.push([this.from, this.to]);
      this._around(runs);
      this._changed();
    }
  }

  /** Runs that are shown and lie in view, in order. */
  runsInView() {
    return this._filter.runs.filter((run) => this.x[run] >= this.from && this.x[run] <= this.to);
  }

  _around(runs) {
    const [first, last] = [this.x[runs[0]], this.x[runs[runs.length - 1]]];
    const room = Math.max((last - first) * 0.015, this.byTime ? 60e3 : 0.5);
    this.from = Math.max(this.whole[0], first - room);
    this.to = Math.min(this.whole[1], last + room);
  }

  _changed() {
    for (const listener of this._listeners) listener();
  }

  /** Return `[x, label]` of ticks, at most about so many. */
  ticks(most) {
    if (this.byTime) return timeTicks(this.from, this.to, most);
    const { runs } = this._filter;
    const first = Math.max(0, Math.ceil(this.from));
    const last = Math.min(runs.length - 1, Math.floor(this.to));
    const step = Math.max(1, niceStep((last - first + 1) / most));
    const hours = this._data.timeMs[runs[last]] - this._data.timeMs[runs[first]] < 4 * DAY_MS;
    const found = [];
    let day = '';
    for (let at = Math.ceil(first / step) * step; at <= last; at += step) {
      const text = formatMinute(this._data.timeMs[runs[at]]);
      if (!hours) found.push([at, text.slice(0, 10)]);
      else found.push([at, text.slice(0, 10) === day ? text.slice(11) : text.slice(5)]);
      day = text.slice(0, 10);
    }
    return found;
  }
}
