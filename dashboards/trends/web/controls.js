// SPDX-License-Identifier: Apache-2.0
// The bar on top: filters, range, axis, light and dark; and the part of the address that keeps them.

const RANGES = [
  ['365 d', 365],
  ['90 d', 90],
  ['30 d', 30],
  ['7 d', 7],
];
const LAST_RUNS = 50;
const THEMES = ['auto', 'light', 'dark'];
const THEME_KEY = 'benchwright-trends-theme';

class Controls {
  constructor(app) {
    this.app = app;
    this.range = h('span', { class: 'range', id: 'range', role: 'status' });
    this.back = h('button', { id: 'back', click: () => app.view.back() }, 'Back');
    this.reset = h('button', { id: 'reset', click: () => app.view.reset() }, 'All');
    this._build();
  }

  _build() {
    const { app } = this;
    const { filter, view } = app;
    const fields = FILTER_TAGS.filter((tag) => filter.choices[tag].length).map((tag) => {
      const choices = filter.choices[tag].map((value) => [value, value]);
      const field = select(tag, [['', choices.length > 1 ? `all ${choices.length}` : choices[0][0]], ...(choices.length > 1 ? choices : [])], filter.wanted[tag], (value) => app.setFilter(tag, value));
      field.querySelector('select').disabled = choices.length < 2;
      field.querySelector('select').id = `filter-${tag}`;
      return field;
    });
    byId('filters').replaceChildren(...fields);
    const axis = select('Axis', [['time', 'time'], ['runs', 'runs in order']], view.byTime ? 'time' : 'runs', (value) => app.setAxis(value === 'time'));
    axis.querySelector('select').id = 'axis';
    byId('ranges').replaceChildren(
      this.reset,
      ...RANGES.map(([text, days]) => h('button', { click: () => this.showDays(days) }, text)),
      h('button', { click: () => view.showLast(filter.runs.slice(-LAST_RUNS)) }, `${LAST_RUNS} runs`),
      this.back,
      axis,
      this.range,
    );
    byId('theme').addEventListener('click', () => setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]));
  }

  showDays(days) {
    const { data, filter, view } = this.app;
    const last = data.timeMs[filter.runs[filter.runs.length - 1]];
    view.showLast(filter.runs.filter((run) => data.timeMs[run] >= last - days * DAY_MS));
  }

  /** Say what is in view. */
  refresh() {
    const { data, filter, view } = this.app;
    const runs = view.runsInView();
    this.back.disabled = !view.canGoBack;
    this.reset.disabled = !view.zoomed;
    const ends = runs.length ? `${formatMinute(data.timeMs[runs[0]])} … ${formatMinute(data.timeMs[runs[runs.length - 1]])} UTC, ` : '';
    this.range.textContent = `${ends}${runs.length} of ${plural(filter.runs.length, 'run')}`;
    const simulated = data.runs.list('simulated');
    const count = filter.runs.filter((run) => simulated[run]).length;
    byId('simulated').hidden = !count;
    byId('simulated-count').textContent = count === filter.runs.length ? 'All runs shown' : `${count} of ${plural(filter.runs.length, 'run')} shown`;
  }
}

function theme() {
  return document.documentElement.dataset.theme || 'auto';
}

/** Show light, dark, or as the system asks; kept for the next time where the browser lets a file keep things. */
function setTheme(name) {
  if (name === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  byId('theme').textContent = `Colours: ${name}`;
  try {
    localStorage.setItem(THEME_KEY, name);
  } catch {
    // A page that may keep nothing asks the system again.
  }
  repaint();
}

function restoreTheme() {
  let kept = 'auto';
  try {
    kept = localStorage.getItem(THEME_KEY) || 'auto';
  } catch {
    kept = 'auto';
  }
  setTheme(THEMES.includes(kept) ? kept : 'auto');
}

/** Return the state that the address carries. */
function stateOf(app) {
  const state = new URLSearchParams();
  for (const tag of FILTER_TAGS) if (app.filter.wanted[tag]) state.set(tag, app.filter.wanted[tag]);
  if (!app.view.byTime) state.set('axis', 'runs');
  if (app.view.zoomed) {
    state.set('from', String(Math.round(app.view.from * 10) / 10));
    state.set('to', String(Math.round(app.view.to * 10) / 10));
  }
  if (app.detail.run >= 0) state.set('run', app.data.runs.list('run_id')[app.detail.run]);
  return state.toString();
}

/** Take over the state of the address; what does not fit these data is left. */
function restoreState(app) {
  const state = new URLSearchParams(location.hash.slice(1));
  for (const tag of FILTER_TAGS) if (state.get(tag)) app.filter.set(tag, state.get(tag));
  app.view.byTime = state.get('axis') !== 'runs';
  app.view.place();
  app.view.reset();
  const [from, to] = [Number(state.get('from')), Number(state.get('to'))];
  if (state.get('from') && to > from) app.view.zoom(from, to, false);
  return state.get('run') ? app.data.runs.list('run_id').indexOf(state.get('run')) : -1;
}
