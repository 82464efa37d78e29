// The layout designer. All numbers are computed here.
import { html, useEffect, useRef, useState } from './vendor/preact-htm.js'
import { layouts } from './api.js'
import { abilities, fields, totalBits } from './ids.js'
import { Copy, Facts } from './parts.js'
import { compact, number, t, time } from './texts.js'

const units = [['1000000', '1ms'], ['10000000', '10ms'], ['100000000', '100ms'], ['1000000000', '1s']]
const most = 63

export function Designer({ query, go }) {
  const [presets, setPresets] = useState([])
  useEffect(() => { layouts().then(setPresets) }, [])
  if (presets.length === 0) return html`<h1>${t('designerTitle')}</h1>`
  const layout = layoutOf(query, presets[0])
  const set = (change) => {
    const next = { ...layout, ...change }
    go('#/designer?' + new URLSearchParams({
      bits: [next.time, next.datacenter, next.worker, next.sequence].join('/'), unit: next.unit_ns, epoch: next.epoch_ms, ...(next.sequence_first ? { order: 'sequence-worker' } : {}),
    }))
  }
  const can = abilities(layout)
  const text = textOf(layout)
  const free = most - totalBits(layout)
  return html`<h1>${t('designerTitle')}</h1><section class="card">
    <${Borders} layout=${layout} set=${set} />
    <p class="hint">${t('borders')}${free > 0 ? ' ' + t('free', free) : ''}</p>
    <div class="form">
      ${['time', 'datacenter', 'worker', 'sequence'].map((name) => html`<label key=${name}><span class="swatch ${name}"></span>${t(name)}
        <input type="number" min=${name === 'time' ? 1 : 0} max=${layout[name] + free} value=${layout[name]}
          onInput=${(e) => { const n = Math.trunc(Number(e.target.value)); if (n >= (name === 'time' ? 1 : 0) && n <= layout[name] + free) set({ [name]: n }) }} /></label>`)}
      <label>${t('unit')} <select value=${layout.unit_ns} onChange=${(e) => set({ unit_ns: e.target.value })}>
        ${units.map(([ns, name]) => html`<option key=${ns} value=${ns}>${name}</option>`)}</select></label>
      <label>${t('epoch')} <input type="date" min="1970-01-01" max="2200-01-01" value=${new Date(layout.epoch_ms).toISOString().slice(0, 10)}
        onChange=${(e) => { const ms = Date.parse(e.target.value); if (!isNaN(ms)) set({ epoch_ms: ms }) }} /></label>
    </div>
    <${Facts} of=${[
      [t('lastMoment'), can.end ? time(can.end).slice(0, 10) : t('forever')], [t('machines'), number(can.machines)],
      [t('perSecond'), compact(can.perSecond)], [t('perSecondAll'), compact(can.perSecond * can.machines)], [t('js'), t(can.safe ? 'jsSafe' : 'jsUnsafe')],
    ]} />
    <table class="encodings"><tbody>
      ${[[t('flag'), `firn next --layout '${text}'`], ['YAML', `orders: {layout: "${text}"}`], ['Go', `firn.ParseLayout("${text}")`]].map(([name, code]) => html`
        <tr key=${name}><th scope="row">${name}</th><td><code>${code}</code></td><td><${Copy} text=${code} label=${name} /></td></tr>`)}</tbody></table>
    </section>
    <section class="card"><h2>${t('startFrom')}</h2><div class="scroll"><table>
      <thead><tr><th>${t('preset')}</th><th>${t('bits')}</th><th class="n">${t('machines')}</th><th class="n wide">${t('perSecond')}</th><th>${t('lastMoment')}</th></tr></thead>
      <tbody>${presets.map((p) => { const a = abilities(p); return html`<tr key=${p.name}>
        <td><button type="button" class="plain" onClick=${() => set(p)}>${p.name}</button></td><td>${[p.time, p.datacenter, p.worker, p.sequence].join('/')}</td>
        <td class="n">${number(a.machines)}</td><td class="n wide">${compact(a.perSecond)}</td><td>${a.end ? a.end.getUTCFullYear() : '–'}</td></tr>` })}</tbody></table></div></section>`
}

// layoutOf reads the address of the page, which anyone may have written.
function layoutOf(query, usual) {
  const widths = (query.bits ?? '').split('/').map(Number)
  const good = widths.length === 4 && widths.every((n) => Number.isInteger(n) && n >= 0) && widths[0] > 0 && widths.reduce((a, b) => a + b) <= most
  const [time, datacenter, worker, sequence] = good ? widths : [usual.time, usual.datacenter, usual.worker, usual.sequence]
  const epoch = Number(query.epoch ?? usual.epoch_ms)
  return {
    time, datacenter, worker, sequence, sequence_first: query.order === 'sequence-worker',
    unit_ns: units.some(([ns]) => ns === query.unit) ? query.unit : usual.unit_ns,
    epoch_ms: Number.isInteger(epoch) && Math.abs(epoch) < 8e12 ? epoch : usual.epoch_ms,
  }
}

function textOf(layout) {
  let text = [layout.time, layout.datacenter, layout.worker, layout.sequence].join('/')
  if (layout.unit_ns !== '1000000') text += ',unit=' + units.find(([ns]) => ns === layout.unit_ns)[1]
  if (layout.epoch_ms !== Date.UTC(2025, 0, 1)) text += ',epoch=' + new Date(layout.epoch_ms).toISOString().replace('.000Z', 'Z')
  return layout.sequence_first ? text + ',order=sequence-worker' : text
}

function Borders({ layout, set }) {
  const bar = useRef()
  const all = fields(layout)
  const drag = (i) => (event) => {
    event.preventDefault()
    event.target.setPointerCapture(event.pointerId)
    const from = event.clientX
    const width = bar.current.clientWidth / totalBits(layout)
    const start = { a: all[i], b: all[i + 1] }
    event.target.onpointermove = (e) => {
      const by = Math.round((e.clientX - from) / width)
      const step = Math.max(Math.min(by, start.b.bits - 1), 1 - start.a.bits)
      set({ [start.a.name]: start.a.bits + step, [start.b.name]: start.b.bits - step })
    }
    event.target.onpointerup = event.target.onpointercancel = (e) => { e.target.onpointermove = null }
  }
  const keys = (i) => (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!by) return
    event.preventDefault()
    const [a, b] = [all[i], all[i + 1]]
    if ((by > 0 ? b : a).bits > 1) set({ [a.name]: a.bits + by, [b.name]: b.bits - by }) // a field of 0 bits has no border
  }
  return html`<div class="borders" ref=${bar}>${all.map((f, i) => html`<div key=${f.name} class="field ${f.name}" style=${{ flexGrow: f.bits }}>
    <span class="what">${t(f.name)}</span><b>${f.bits}</b>
    ${i < all.length - 1 && html`<span class="border" role="slider" tabindex="0" aria-label=${t('border', t(f.name), t(all[i + 1].name))}
      aria-valuenow=${f.bits} aria-valuemin="1" aria-valuemax=${f.bits + all[i + 1].bits - 1} onPointerDown=${drag(i)} onKeyDown=${keys(i)}></span>`}</div>`)}</div>`
}
