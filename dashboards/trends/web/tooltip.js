// SPDX-License-Identifier: Apache-2.0
// What stands at a run, exactly: beside the pointer, and read aloud where the keyboard moves the cursor.

class Tooltip {
  constructor() {
    this.node = byId('tip');
    this._spoken = byId('spoken');
  }

  /** Show content at the pointer, or beside the chart's cursor where there is none. */
  show(chart, run, content, event) {
    this.node.replaceChildren(...content);
    this.node.hidden = false;
    const box = chart.canvas.getBoundingClientRect();
    const x = event ? event.clientX : box.left + (chart.toX(chart.view.x[run]) * box.width) / chart.width;
    const y = event ? event.clientY : box.top + 20;
    const { offsetWidth: width, offsetHeight: height } = this.node;
    const left = x + 18 + width > innerWidth ? x - 18 - width : x + 18;
    const top = Math.min(y + 12, innerHeight - height - 8);
    this.node.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
    if (!event) this._spoken.textContent = this.node.innerText.replace(/\s+/g, ' ');
  }

  hide() {
    this.node.hidden = true;
  }
}

/** Return the head of a tooltip: which run, when, of what commit, how it came out. */
function describeRun(data, run) {
  const of = (name) => data.runs.list(name)[run];
  const place = [of('bench'), of('profile'), of('branch')].filter(Boolean).join(' · ');
  return [
    h('div', { class: 'tip-head' }, chip(of('outcome')), of('simulated') ? h('span', { class: 'stamp' }, 'SIMULATED') : ''),
    h('div', { class: 'mono' }, of('run_id')),
    h('div', {}, formatTime(data.timeMs[run]), ' · ', place),
    h('div', { class: 'mono muted' }, shortCommit(of('commit'))),
  ];
}

const QUANTILES = [
  ['p50_ns', 'p50'],
  ['p90_ns', 'p90'],
  ['p99_ns', 'p99'],
  ['p999_ns', 'p99.9'],
];

/** Return the figures of one series at a run, as rows `[name, text]`. */
function figuresOf(series, row) {
  const { unit } = series;
  const number = (name) => series.figure(name)[row];
  const rows = [[spoken(series.tags.statistic || 'value'), exactValue(number('value'), unit)]];
  rows.push(['U', exactValue(number('u'), unit)]);
  for (const [name, text] of [['limit_upper', 'limit'], ['limit_lower', 'lower limit']]) {
    if (Number.isFinite(number(name))) rows.push([text, exactValue(number(name), unit)]);
  }
  const share = series.marginShare[row];
  const percent = Number.isFinite(share) ? ` (${formatPercent(share)})` : '';
  if (Number.isFinite(number('margin'))) rows.push(['margin', exactValue(number('margin'), unit) + percent]);
  for (const [name, text] of QUANTILES) {
    if (series.table.has(name)) rows.push([text, exactValue(series.table.numbers(name)[row], 'ns')]);
  }
  const [n, lost] = ['n', 'lost'].map((name) => series.table.list(name)[row]);
  if (n !== null) rows.push(['n', `${exactValue(n, '')}${lost === null ? '' : `, lost ${exactValue(lost, '')}`}`]);
  return rows;
}

function figureTable(rows) {
  return h('table', { class: 'figures' }, h('tbody', {}, rows.map(([name, text]) => h('tr', {}, h('th', {}, name), h('td', {}, text)))));
}

/** Return what a tooltip says of a group of series at a run. */
function describeGroup(data, group, run) {
  const found = describeRun(data, run);
  for (const series of group.members) {
    const row = series.row(run);
    if (row < 0) continue;
    const code = series.table.list('outcome_code')[row];
    const outcome = code === null ? '' : chip(OUTCOMES[code]);
    found.push(h('div', { class: 'tip-series' }, h('b', {}, group.name), ` ${series.tags.requirement || ''} `, outcome));
    found.push(figureTable(figuresOf(series, row)));
    const reason = series.table.list('reason')[row];
    if (reason) found.push(h('div', { class: 'reason' }, reason));
  }
  return found;
}

function describeEvents(events, run) {
  return events.filter((event) => event.run === run).map((event) => h('div', { class: `event ${event.kind}` }, ...eventWords(event)));
}
